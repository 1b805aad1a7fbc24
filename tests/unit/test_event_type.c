// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"
#include "chat/frame.h"
#include "events/event_type.h"
#include "unread/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { FRAME_MAX = 65536 };

static void assert_type_of_frame(struct buffer *frame, const char *type)
{
    json_t *value = NULL;
    assert_false(buffer_failed(frame));
    assert_int_equal(json_read(frame->data, frame->length, JSON_DEPTH_MAX, JSON_VALUES_ANY, &value),
                     0);
    assert_string_equal(json_string_value(json_object_get(value, "type")), type);
    assert_true(strlen(type) <= EVENT_TYPE_MAX);
    json_decref(value);
    buffer_done(frame);
}

static void test_events_of_channels(void **state)
{
    const struct message message = {.user_id = "U1",
                                    .bot_id = "",
                                    .subtype = "",
                                    .text = "",
                                    .extra = "{}",
                                    .extra_length = 2,
                                    .client_msg_id = ""};
    (void)state;
    for (enum event_kind kind = 0; kind < EVENT_CREATED; kind++)
        for (enum channel_type type = 0; type < CHANNEL_TYPE_MAX; type++) {
            const struct frame_context context = {.workspace_id = "T1",
                                                  .channel_id = "C1",
                                                  .type = type,
                                                  .actor = "U1",
                                                  .note = "pin_added",
                                                  .note_data = ""};
            struct buffer frame = BUFFER(FRAME_MAX);
            frame_write(&frame, kind, &context, &message);
            assert_type_of_frame(&frame, kind == EVENT_NOTE ? "pin_added" : event_type(kind, type));
        }
}

static void test_marks(void **state)
{
    (void)state;
    for (enum channel_type type = 0; type < CHANNEL_TYPE_MAX; type++)
        for (enum unread_frame form = UNREAD_FRAME_MARKED; form <= UNREAD_FRAME_CHANGED; form++) {
            const struct unread_view view = {.type = type};
            struct event *event = unread_mark_event(form, &view, 1);
            struct buffer frame = BUFFER(FRAME_MAX);
            assert_non_null(event);
            buffer_append(&frame, event->frame, event->frame_length);
            assert_type_of_frame(&frame, event_type_of(event));
            event_unref(event);
        }
}

// As Slack names them.
static void test_names(void **state)
{
    (void)state;
    assert_string_equal(event_type(EVENT_RENAME, CHANNEL_PUBLIC), "channel_rename");
    assert_string_equal(event_type(EVENT_RENAME, CHANNEL_PRIVATE), "group_rename");
    assert_string_equal(event_type(EVENT_CREATED, CHANNEL_PRIVATE), "channel_created");
    assert_string_equal(event_type(EVENT_EPHEMERAL, CHANNEL_IM), "message");
    assert_string_equal(event_type_of_mark(CHANNEL_MPIM, false), "mpim_marked");
    assert_string_equal(event_type_of_mark(CHANNEL_MPIM, true), "unread_changed");
    assert_string_equal(event_type_of_thread(EVENT_THREAD_MARK, true), "thread_marked");
    assert_string_equal(event_type_of_thread(EVENT_THREAD_FOLLOW, true), "thread_subscribed");
    assert_string_equal(event_type_of_thread(EVENT_THREAD_FOLLOW, false), "thread_unsubscribed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_of_channels),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
