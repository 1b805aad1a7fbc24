// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "events/event_type.h"

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

static char reason[EVENT_REASON_SIZE];

static bool is_of_one_user(enum event_kind kind)
{
    return kind == EVENT_MARK || kind == EVENT_EPHEMERAL || event_kind_is_thread(kind);
}

static struct event *sample(enum event_kind kind)
{
    struct event *event = event_new(kind, strdup(frame), strlen(frame));
    assert_non_null(event);
    event->is_private = true;
    event->channel_type = CHANNEL_PRIVATE;
    event->counted = kind == EVENT_POST;
    (void)snprintf(event->workspace_id, sizeof event->workspace_id, "T0000000001");
    (void)snprintf(event->channel_id, sizeof event->channel_id, "C0000000002");
    (void)snprintf(event->user_id, sizeof event->user_id, "U0000000003");
    (void)snprintf(event->origin, sizeof event->origin, "W0000000007");
    event->seq = is_of_one_user(kind) || kind == EVENT_CREATED || kind == EVENT_STRATEGY ? 0 : 42;
    if (kind == EVENT_NOTE)
        (void)snprintf(event->note, sizeof event->note, "reaction_added");
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
    assert_int_equal(a->channel_type, b->channel_type);
    assert_int_equal(a->unread_only, b->unread_only);
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
    assert_string_equal(a->note, b->note);
    assert_memory_equal(&a->head, &b->head, sizeof a->head);
    assert_memory_equal(&a->member, &b->member, sizeof a->member);
    assert_int_equal(a->frame_length, b->frame_length);
    assert_memory_equal(a->frame, b->frame, a->frame_length);
}

static struct event *whole_sample(enum event_kind kind)
{
    struct event *event = sample(kind);
    if (!is_of_one_user(kind))
        fill_head(event);
    if (kind == EVENT_JOIN || kind == EVENT_LEAVE ||
        (is_of_one_user(kind) && kind != EVENT_EPHEMERAL))
        fill_member(event);
    return event;
}

static void assert_decodes_as(const char *data, size_t length, const struct event *event)
{
    struct event *back;
    assert_int_equal(event_decode(data, length, &back, reason), 0);
    assert_same(event, back);
    event_unref(back);
}

static void every_kind_comes_back_as_it_went(void **state)
{
    (void)state;
    for (enum event_kind kind = 0; kind < EVENT_KIND_MAX; kind++) {
        struct event *event = whole_sample(kind);
        struct buffer wire = encoded(event);
        assert_decodes_as(wire.data, wire.length, event);
        buffer_done(&wire);
        event_unref(event);
    }
}

// A line of what a release wrote: the sample of a kind. Returns the kind.
static enum event_kind assert_record(const char *line, size_t length, bool is_own)
{
    struct event *back;
    assert_int_equal(event_decode(line, length, &back, reason), 0);
    struct event *event = whole_sample(back->kind);
    struct buffer wire = encoded(event);
    enum event_kind kind = back->kind;
    assert_same(event, back);
    assert_int_equal(is_own, wire.length == length && memcmp(wire.data, line, length) == 0);
    buffer_done(&wire);
    event_unref(event);
    event_unref(back);
    return kind;
}

// Returns the kinds in the file, as bits.
static unsigned assert_records(const char *path, bool is_own)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    unsigned kinds = 0;
    assert_non_null(file);
    while ((length = getline(&line, &size, file)) > 0)
        kinds |= 1U << assert_record(line, (size_t)length - 1, is_own);
    free(line);
    assert_int_equal(fclose(file), 0);
    return kinds;
}

// 0.2.0 wrote what 0.1.0 did.
static void records_of_the_release_before_are_read(void **state)
{
    enum { KINDS_OF_0_2_0 = 14 };
    (void)state;
    unsigned kinds = assert_records(TIDINGS_UNIT_DIRECTORY "/events-0.2.0.jsonl", false);
    assert_int_equal(__builtin_popcount(kinds), KINDS_OF_0_2_0);
}

static void records_are_those_of_this_release(void **state)
{
    (void)state;
    assert_int_equal(assert_records(TIDINGS_UNIT_DIRECTORY "/events-0.3.0.jsonl", true),
                     (1U << EVENT_KIND_MAX) - 1);
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
    assert_int_equal(event_decode(exact, length, &event, reason), -ERROR_INVALID_ARGUMENTS);
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

// The wire form of an event with `to` put in the place of `from`.
static struct buffer encoded_with(const struct event *event, const char *from, const char *to)
{
    struct buffer wire = encoded(event);
    char *at = memmem(wire.data, wire.length, from, strlen(from));
    assert_non_null(at);
    struct buffer other;
    buffer_init(&other, 1 << 22);
    buffer_append(&other, wire.data, (size_t)(at - wire.data));
    buffer_append_text(&other, to);
    size_t rest = (size_t)(at - wire.data) + strlen(from);
    buffer_append(&other, wire.data + rest, wire.length - rest);
    assert_false(buffer_failed(&other));
    buffer_done(&wire);
    return other;
}

static void refused_of(enum event_kind kind, const char *from, const char *to, const char *why)
{
    struct event *event = whole_sample(kind);
    struct buffer bad = encoded_with(event, from, to);
    refused(bad.data, bad.length);
    if (why)
        assert_string_equal(reason, why);
    buffer_done(&bad);
    event_unref(event);
}

static void refused_with(const char *from, const char *to)
{
    refused_of(EVENT_POST, from, to, NULL);
}

static void taken_of(enum event_kind kind, const char *from, const char *to)
{
    struct event *event = whole_sample(kind);
    struct buffer other = encoded_with(event, from, to);
    assert_decodes_as(other.data, other.length, event);
    buffer_done(&other);
    event_unref(event);
}

static void taken_with(const char *from, const char *to)
{
    taken_of(EVENT_POST, from, to);
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
    refused_with("\"W0000000007\"", "\"W000000,\"frame\":\"");
    refused_with("\"seq\":42", "\"seq\":0");
    refused_with("\"seq\":42", "\"seq\":-42");
    refused_with("\"seq\":42", "\"seq\":42.0");
    refused_with("\"seq\":42", "\"seq\":9007199254740992");
    refused_with("\"seq\":42", "\"seq\":99999999999999999999");
    refused_with("\"seq\":42", "\"seq\":042");
    refused_with("\"seq\":42", "\"seq\":");
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
    refused_with(frame, "{},\"frame\":{}");
    refused_with(frame, "{},\"fr\\u0061me\":{}");
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

static void another_order_and_blanks_are_fine(void **state)
{
    (void)state;
    taken_with("{\"v\":1,\"kind\":\"post\",", " {\n\t\"kind\" : \"post\" , \"v\":1 ,\r");
    taken_with("\"seq\":42", "\"seq\": 42");
    taken_with("\"W0000000007\"", "\"W00000000\\u00307\"");
    taken_with("\"frame\":", "\"frame\" : ");
    taken_with("\"ord\":40,\"strategy\":2", "\"strategy\":2,\"ord\":40");
    taken_with(frame, "{\"type\":\"message\",\"text\":\"a \\\"quote\\\", "
                      "\\u00fc,\\\"frame\\\":{ [\"} ");
}

static void a_frame_may_stand_anywhere(void **state)
{
    char first[256];
    (void)state;
    (void)snprintf(first, sizeof first, "{\"frame\":%s,\"v\":1", frame);
    struct event *event = whole_sample(EVENT_POST);
    struct buffer twice = encoded_with(event, "{\"v\":1", first);
    refused(twice.data, twice.length);
    assert_string_equal(reason, "not in the form of an event: no JSON object");
    const char *mark = ",\"frame\":";
    char *last =
        memmem(twice.data + strlen(first), twice.length - strlen(first), mark, strlen(mark));
    assert_non_null(last);
    last[0] = '}';
    assert_decodes_as(twice.data, (size_t)(last - twice.data) + 1, event);
    buffer_done(&twice);
    event_unref(event);
}

static void unknown_fields_are_ignored_at_every_level(void **state)
{
    (void)state;
    taken_with("{\"v\":1", "{\"frames\":{\"frame\":{}},\"also\":\"frame\",\"v\":1");
    taken_with("\"seq\":42", "\"seq\":42,\"more\":[{\"frame\":{}},null,1.5e3,\"\\ud83d\\ude00\"]");
    taken_with("\"head\":{", "\"member\":7,\"head\":{\"more\":{\"seq\":1},");
    taken_of(EVENT_JOIN, "\"member\":{", "\"member\":{\"more\":-1,");
    taken_of(EVENT_MARK, "\"member\":{", "\"head\":null,\"member\":{");
    taken_with(",\"head\":", ",\"\\u00fc\":true,\"head\":");
}

static void what_an_event_can_do_without_may_be_absent(void **state)
{
    (void)state;
    taken_with("\"private\":true,", ""); // as it is of the sample, too
    taken_with("\"channel_type\":1,", "");
    taken_of(EVENT_MARK, "\"unread_only\":false,", "");
    taken_of(EVENT_MARK, "\"counted\":false,", "");
    taken_of(EVENT_MARK, "\"seq\":0,", "");
    taken_of(EVENT_MARK, "\"deleted_ord\":0,\"deleted_user\":\"\",", "");
    refused_of(EVENT_POST, "\"counted\":true,", "", "not in the form of an event: counted");
    refused_of(EVENT_POST, "\"seq\":42,", "", "not in the form of an event: seq");
    refused_of(EVENT_DELETE, "\"deleted_ord\":39,", "", "not in the form of an event: deleted_ord");
    refused_of(EVENT_POST, "\"ord\":40,", "", "not in the form of an event: head.ord");
    refused_of(EVENT_JOIN, "\"number\":3,", "", "not in the form of an event: member.number");
    refused_of(EVENT_MARK, "\"epoch\":3,", "", "not in the form of an event: member.epoch");
    refused_of(EVENT_THREAD_MARK, "\"ts\":\"1717200000.000001\",", "",
               "not in the form of an event: member.ts");
    refused_of(EVENT_POST, "\"user\":\"U0000000003\",", "", "not in the form of an event: user");
}

static struct event *read_of(const char *kind, const char *channel, const char *members,
                             const char *text)
{
    char record[1024];
    struct event *event;
    int length = snprintf(
        record, sizeof record,
        "{\"v\":1,\"kind\":\"%s\",\"workspace\":\"T0000000001\",\"channel\":\"%s\",%s"
        "\"user\":\"U0000000003\",\"event_ts\":\"1717200000.123456\","
        "\"ts\":\"1717200000.123400\",\"member\":{\"epoch\":3,\"ts\":\"1717200000.000001\","
        "\"seq\":30,\"ord\":29,\"own\":4,\"posts\":5,\"member_seq\":12,\"number\":3,"
        "\"active\":false},\"frame\":%s}",
        kind, channel, members, text);
    assert_int_equal(event_decode(record, (size_t)length, &event, reason), 0);
    return event;
}

// What 0.2.0 does not say, and a type that this release does not know.
static void assert_read_from_frame(const char *channel, const char *members, const char *text,
                                   enum channel_type type, bool unread_only)
{
    struct event *event = read_of("mark", channel, members, text);
    assert_int_equal(event->channel_type, type);
    assert_int_equal(event->unread_only, unread_only);
    event_unref(event);
}

static void what_the_release_before_does_not_say_is_in_the_frame(void **state)
{
    (void)state;
    const char *marked = "{\"type\":\"channel_marked\"}";
    const char *changed = "{\"type\":\"unread_changed\"}";
    const char *group = "{\"type\":\"message\",\"channel_type\":\"mpim\"}";
    const char *marked_group = "{\"type\":\"mpim_marked\"}";
    const char *text = "{\"text\":\"\\\"type\\\":\\\"unread_changed\\\"\"}";
    const char *metadata = "{\"type\":\"message\",\"channel_type\":\"channel\",\"metadata\":"
                           "{\"event_payload\":{\"channel_type\":\"mpim\"}}}";
    assert_read_from_frame("C0000000002", "\"private\":false,", marked, CHANNEL_PUBLIC, false);
    assert_read_from_frame("G0000000002", "", changed, CHANNEL_PRIVATE, true);
    assert_read_from_frame("D0000000002", "", marked, CHANNEL_IM, false);
    assert_read_from_frame("G0000000002", "", group, CHANNEL_MPIM, false);
    assert_read_from_frame("G0000000002", "", marked_group, CHANNEL_MPIM, false);
    assert_read_from_frame("G0000000002", "", text, CHANNEL_PRIVATE, false);
    assert_read_from_frame("C0000000002", "\"private\":false,", metadata, CHANNEL_PUBLIC, false);
    assert_read_from_frame("C0000000002", "\"unread_only\":false,\"channel_type\":9,", changed,
                           CHANNEL_PRIVATE, false);
}

static void assert_type_of_thread(const char *kind, const char *text, const char *type)
{
    struct event *event = read_of(kind, "C0000000002", "", text);
    assert_string_equal(event_type_of(event), type);
    event_unref(event);
}

static void the_release_before_says_in_the_frame_whether_a_thread_is_followed(void **state)
{
    (void)state;
    const char *followed = "{\"subscribed\":true}";
    const char *left = "{\"subscribed\":false}";
    assert_type_of_thread("thread_follow", followed, "thread_subscribed");
    assert_type_of_thread("thread_follow", left, "thread_unsubscribed");
    assert_type_of_thread("thread_mark", followed, "thread_marked");
}

static void what_cannot_be_applied_is_told_apart(void **state)
{
    (void)state;
    refused_of(EVENT_POST, "\"v\":1", "\"v\":2", "of a later version: v=2");
    refused_of(EVENT_POST, "\"v\":1,\"kind\":\"post\"", "\"kind\":[],\"v\":70",
               "of a later version: v=70");
    refused_of(EVENT_POST, "\"v\":1", "\"v\":0", "not in the form of an event: v");
    refused_of(EVENT_POST, "\"v\":1,", "", "not in the form of an event: v");
    refused_of(EVENT_POST, "\"v\":1", "\"v\":2.5", "not in the form of an event: v");
    refused_of(EVENT_POST, "\"post\"", "\"sparkle\"", "of an unknown kind: sparkle");
    refused_of(EVENT_POST, "\"post\"", "\"a\\nb\"", "of an unknown kind: a");
    refused_of(EVENT_POST, "\"post\"", "\"\\u00fc\"", "of an unknown kind: ");
    refused_of(EVENT_POST, "\"post\"",
               "\"0123456789012345678901234567890123456789012345678901234567890123456789\"",
               "of an unknown kind: 0123456789012345678901234567890123456789");
    refused_of(EVENT_POST, "\"post\"", "7", "not in the form of an event: kind");
    refused_of(EVENT_POST, frame, "[]", "not in the form of an event: frame");
    refused("no event at all", 15);
    assert_string_equal(reason, "not in the form of an event: no JSON object");
}

static void the_tolerant_form_is_bounded(void **state)
{
    static char more[2 << 20];
    (void)state;
    (void)snprintf(more, sizeof more, "\"seq\":42,\"more\":");
    size_t start = strlen(more);
    memset(more + start, '[', 1000);
    memset(more + start + 1000, ']', 1000);
    refused_of(EVENT_POST, "\"seq\":42", more, "not in the form of an event: no JSON object");
    memset(more + start, '7', sizeof more - start - 1);
    refused_of(EVENT_POST, "\"seq\":42", more, "not in the form of an event: no JSON object");
    refused_with("\"seq\":42", "\"more\":\"\xff\",\"seq\":42");
    refused_with("\"seq\":42", "\"more\":1,\"more\":2,\"seq\":42");
    refused_with("\"seq\":42", "\"more\":{\"a\":1,\"a\":2},\"seq\":42");
    refused_with("\"ord\":40", "\"ord\":40,\"ord\":40");
    refused_with("\"W0000000007\"", "\"W0000\\u0000\", \"x\":\"\"");
}

static void notes_without_a_name_are_refused(void **state)
{
    static const char *const names[] = {"", "Reaction", "reaction added", "reaction-added",
                                        "a_name_of_thirty_two_characters_"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char wire[1024];
        int length = snprintf(
            wire, sizeof wire,
            "{\"v\":1,\"kind\":\"note\",\"workspace\":\"T0000000001\",\"channel\":\"C0000000002\","
            "\"user\":\"U0000000003\",\"seq\":1,\"event_ts\":\"1717200000.123456\","
            "\"ts\":\"1717200000.123456\",\"head\":{\"seq\":1,\"ord\":1,\"strategy\":0,"
            "\"generation\":0},\"note\":{\"name\":\"%s\"},\"frame\":{}}",
            names[i]);
        refused(wire, (size_t)length);
        assert_string_equal(reason, "not in the form of an event: note.name");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_comes_back_as_it_went),
        cmocka_unit_test(records_of_the_release_before_are_read),
        cmocka_unit_test(records_are_those_of_this_release),
        cmocka_unit_test(kinds_have_names),
        cmocka_unit_test(notes_without_a_name_are_refused),
        cmocka_unit_test(what_is_cut_short_is_refused),
        cmocka_unit_test(every_field_is_looked_at),
        cmocka_unit_test(a_frame_is_one_object),
        cmocka_unit_test(another_order_and_blanks_are_fine),
        cmocka_unit_test(a_frame_may_stand_anywhere),
        cmocka_unit_test(unknown_fields_are_ignored_at_every_level),
        cmocka_unit_test(what_an_event_can_do_without_may_be_absent),
        cmocka_unit_test(what_the_release_before_does_not_say_is_in_the_frame),
        cmocka_unit_test(the_release_before_says_in_the_frame_whether_a_thread_is_followed),
        cmocka_unit_test(what_cannot_be_applied_is_told_apart),
        cmocka_unit_test(the_tolerant_form_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
