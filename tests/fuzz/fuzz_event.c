// SPDX-License-Identifier: Apache-2.0
// Events as Kafka and Redis bring them: what is read, written and read again is the same event, and
// the quick reader and the tolerant one agree.
#include "../../src/events/event_tolerant.h"
#include "base/id.h"
#include "base/text.h"
#include "fuzz.h"

static char *encode(const struct event *event, size_t *ret_length)
{
    struct buffer out;
    buffer_init(&out, 1 << 24);
    event_encode(event, &out);
    assert(!buffer_failed(&out));
    *ret_length = out.length;
    return buffer_take_text(&out);
}

// The reason is text that can be printed.
static void reason_check(const char *reason)
{
    size_t length = strnlen(reason, EVENT_REASON_SIZE);
    assert(length > 0 && length < EVENT_REASON_SIZE);
    for (size_t i = 0; i < length; i++)
        assert(reason[i] >= ' ' && reason[i] <= '~');
}

static void same_check(const struct event *event, const char *text, size_t length,
                       int (*decode)(const char *, size_t, struct event **, char *))
{
    struct event *again = NULL;
    char reason[EVENT_REASON_SIZE];
    size_t again_length;
    int r = decode(text, length, &again, reason);
    assert(r == 0 && again->kind == event->kind);
    char *text_again = encode(again, &again_length);
    assert(again_length == length && memcmp(text_again, text, length) == 0);
    assert(again->frame_length == event->frame_length);
    free(text_again);
    event_unref(again);
}

static void event_check(const struct event *event)
{
    size_t length;
    char *text = encode(event, &length);
    assert(id_is_valid(event->channel_id, "CGD") && id_is_valid(event->workspace_id, "T"));
    assert(text_is_utf8(text, length));
    same_check(event, text, length, event_decode);
    same_check(event, text, length, event_decode_tolerant);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct event *event = NULL;
    char reason[EVENT_REASON_SIZE] = "";
    if (event_decode((const char *)data, size, &event, reason) < 0) {
        assert(!event);
        reason_check(reason);
        return 0;
    }
    event_check(event);
    event_unref(event);
    return 0;
}
