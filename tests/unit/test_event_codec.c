// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "events/event.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

static const char frame[] =
    "{\"type\":\"message\",\"text\":\"a \\\"quote\\\", \\u00fc,\\\"frame\\\":{ [\"}";

static bool is_of_one_user(enum event_kind kind)
{
    return kind == EVENT_MARK || kind == EVENT_EPHEMERAL || event_kind_is_thread(kind);
}

static struct event *sample(enum event_kind kind)
{
    struct event *event = event_new(kind, strdup(frame), strlen(frame));
    assert_non_null(event);
    event->is_private = true;
    event->counted = kind == EVENT_POST;
    (void)snprintf(event->workspace_id, sizeof event->workspace_id, "T0000000001");
    (void)snprintf(event->channel_id, sizeof event->channel_id, "C0000000002");
    (void)snprintf(event->user_id, sizeof event->user_id, "U0000000003");
    (void)snprintf(event->origin, sizeof event->origin, "W0000000007");
    event->seq = is_of_one_user(kind) || kind == EVENT_CREATED || kind == EVENT_STRATEGY ? 0 : 42;
    event->event_ts = 1717200000123456;
    event->ts = 1717200000123400;
    return event;
}

static void fill_head(struct event *event)
{
    event->head = (struct event_head){.seq = 43, .ord = 40, .strategy = 2, .generation = 9};
    event->deleted_ord = 39;
    (void)snprintf(event->deleted_user, sizeof event->deleted_user, "U0000000005");
}

static void fill_member(struct event *event)
{
    event->member = (struct event_member){.epoch = 3,
                                          .ts = 1717200000000001,
                                          .seq = 30,
                                          .ord = 29,
                                          .own = 4,
                                          .posts = 5,
                                          .member_seq = 12,
                                          .number = 3,
                                          .active = true};
}

static struct buffer encoded(const struct event *event)
{
    struct buffer wire;
    buffer_init(&wire, 1 << 20);
    event_encode(event, &wire);
    assert_false(buffer_failed(&wire));
    return wire;
}

// Every field. Head and member have no padding within.
static void assert_same(const struct event *a, const struct event *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->is_private, b->is_private);
    assert_int_equal(a->counted, b->counted);
    assert_string_equal(a->workspace_id, b->workspace_id);
    assert_string_equal(a->channel_id, b->channel_id);
    assert_string_equal(a->user_id, b->user_id);
    assert_string_equal(a->origin, b->origin);
    assert_int_equal(a->seq, b->seq);
    assert_int_equal(a->event_ts, b->event_ts);
    assert_int_equal(a->ts, b->ts);
    assert_int_equal(a->deleted_ord, b->deleted_ord);
    assert_string_equal(a->deleted_user, b->deleted_user);
    assert_memory_equal(&a->head, &b->head, sizeof a->head);
    assert_memory_equal(&a->member, &b->member, sizeof a->member);
    assert_int_equal(a->frame_length, b->frame_length);
    assert_memory_equal(a->frame, b->frame, a->frame_length);
}

static void every_kind_comes_back_as_it_went(void **state)
{
    (void)state;
    for (enum event_kind kind = 0; kind < EVENT_KIND_MAX; kind++) {
        struct event *event = sample(kind);
        if (!is_of_one_user(kind))
            fill_head(event);
        if (kind == EVENT_JOIN || kind == EVENT_LEAVE ||
            (is_of_one_user(kind) && kind != EVENT_EPHEMERAL))
            fill_member(event);
        struct buffer wire = encoded(event);
        struct event *back;
        assert_int_equal(event_decode(wire.data, wire.length, &back), 0);
        assert_same(event, back);
        buffer_done(&wire);
        event_unref(event);
        event_unref(back);
    }
}

static void kinds_have_names(void **state)
{
    (void)state;
    for (enum event_kind kind = 0; kind < EVENT_KIND_MAX; kind++) {
        enum event_kind back;
        assert_int_equal(event_kind_parse(event_kind_name(kind), &back), 0);
        assert_int_equal(back, kind);
    }
    enum event_kind kind;
    assert_int_equal(event_kind_parse("posts", &kind), -ERROR_INVALID_ARGUMENTS);
}

static void refused(const char *data, size_t length)
{
    struct event *event;
    // A copy of just this size on the heap, so that a sanitizer sees a read past its end.
    char *copy = malloc(length + 1);
    assert_non_null(copy);
    memcpy(copy, data, length);
    char *exact = realloc(copy, length ? length : 1);
    assert_int_equal(event_decode(exact, length, &event), -ERROR_INVALID_ARGUMENTS);
    free(exact);
}

static void what_is_cut_short_is_refused(void **state)
{
    (void)state;
    struct event *event = sample(EVENT_POST);
    struct buffer wire = encoded(event);
    for (size_t length = 0; length < wire.length; length++)
        refused(wire.data, length);
    buffer_done(&wire);
    event_unref(event);
}

// The wire form of a post with `from` put in the place of `to`.
static void refused_with(const char *from, const char *to)
{
    struct event *event = sample(EVENT_POST);
    struct buffer wire = encoded(event);
    char *at = memmem(wire.data, wire.length, from, strlen(from));
    assert_non_null(at);
    struct buffer bad;
    buffer_init(&bad, 1 << 20);
    buffer_append(&bad, wire.data, (size_t)(at - wire.data));
    buffer_append_text(&bad, to);
    size_t rest = (size_t)(at - wire.data) + strlen(from);
    buffer_append(&bad, wire.data + rest, wire.length - rest);
    refused(bad.data, bad.length);
    buffer_done(&bad);
    buffer_done(&wire);
    event_unref(event);
}

static void every_field_is_looked_at(void **state)
{
    (void)state;
    refused_with("\"v\":1", "\"v\":2");
    refused_with("\"v\":1", "\"v\":\"1\"");
    refused_with("\"post\"", "\"party\"");
    refused_with("\"T0000000001\"", "\"X0000000001\"");
    refused_with("\"C0000000002\"", "\"C000000000 2\"");
    refused_with("\"C0000000002\"", "null");
    refused_with("\"C0000000002\"", "\"C00000000000000000000000000000000000000000002\"");
    refused_with("\"U0000000003\"", "\"\"");
    refused_with("\"W0000000007\"", "\"W00000000000000000000007\"");
    refused_with("\"W0000000007\"", "\"U0000000007\"");
    refused_with("\"W0000000007\"", "\"W00000000\\\"7\"");
    refused_with("\"W0000000007\"", "\"W00000000\\u0030\"");
    refused_with("\"W0000000007\"", "\"W000000,\"frame\":\"");
    refused_with("\"seq\":42", "\"seq\":0");
    refused_with("\"seq\":42", "\"seq\":-42");
    refused_with("\"seq\":42", "\"seq\":42.0");
    refused_with("\"seq\":42", "\"seq\":9007199254740992");
    refused_with("\"seq\":42", "\"seq\":99999999999999999999");
    refused_with("\"seq\":42", "\"seq\":042");
    refused_with("\"seq\":42", "\"seq\":");
    refused_with("\"seq\":42", "\"seq\": 42");
    refused_with("\"seq\":42", "\"seq\":42,\"seq\":43");
    refused_with("\"seq\":42,", "");
    refused_with("\"1717200000.123456\"", "\"1717200000.1234567\"");
    refused_with("\"1717200000.123456\"", "1717200000.123456");
    refused_with("\"private\":true", "\"private\":1");
    refused_with("\"head\":{", "\"head\":[],\"h\":{");
    refused_with("\"head\":{", "\"frame\":{},\"head\":{");
}

static void a_frame_is_one_object(void **state)
{
    (void)state;
    refused_with(frame, "");
    refused_with(frame, "[]");
    refused_with(frame, "null");
    refused_with(frame, "{");
    refused_with(frame, "{}}");
    refused_with(frame, "{},\"more\":{}");
    refused_with(frame, "{[}]");
    refused_with(frame, "{\"a\":\"}");
    refused_with(frame, "{\"a\":\"\n\"}");
    refused_with(frame, "{\"a\":\"\xff\"}");
    char deep[202];
    (void)snprintf(deep, sizeof deep, "{%0100d", 0);
    memset(deep + 1, '[', 100);
    memset(deep + 101, ']', 100);
    deep[200] = '}';
    deep[201] = '\0';
    refused_with(frame, deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_comes_back_as_it_went),
        cmocka_unit_test(kinds_have_names),
        cmocka_unit_test(what_is_cut_short_is_refused),
        cmocka_unit_test(every_field_is_looked_at),
        cmocka_unit_test(a_frame_is_one_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
