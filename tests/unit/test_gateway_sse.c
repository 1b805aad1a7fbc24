// SPDX-License-Identifier: Apache-2.0
// The text of event streams: requests, positions, events.
#include "../../src/gateway/connection/packet.h"
#include "../../src/gateway/sse/sse_head.h"
#include "http/head.h"
#include "http/path.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

// Of a head without a Host header, which is added; 400 also when it is malformed.
static int head_read(const char *text, struct sse_head *ret_head)
{
    char whole[2048];
    struct http_head head;
    const char *fields = strstr(text, "\r\n") + 2;
    int length =
        snprintf(whole, sizeof whole, "%.*sHost: h\r\n%s", (int)(fields - text), text, fields);
    assert_true(length > 0 && (size_t)length < sizeof whole);
    return head_parse(whole, (size_t)length, &head) ? 400 : sse_head_read(&head, ret_head);
}

static void test_which_paths_are_ours(void **state)
{
    static const char *const ours[] = {"/events", "/events?ticket=x", "/events?", "/api/events",
                                       "/api/events?since=x"};
    static const char *const others[] = {"/events/",    "/event", "/api/event", "/xyz/events",
                                         "/API/events", "/",      "",           "/rtm",
                                         "/link?/link/"};
    (void)state;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        assert_int_equal(path_kind_of(ours[i], strlen(ours[i])), PATH_EVENTS);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(path_kind_of(others[i], strlen(others[i])), PATH_OTHER);
    assert_int_equal(path_kind_of("/rtm/x?/events", 14), PATH_SOCKET);
    assert_int_equal(path_kind_of("/link/?ticket=x", 15), PATH_LINK);
}

static void test_a_whole_head(void **state)
{
    struct sse_head head;
    (void)state;
    assert_int_equal(head_read("GET /events?a=1&ticket=t-1&since=x HTTP/1.1\r\n"
                               "LAST-event-id:  e1.7.6.5.4\t\r\norigin: https://a.example\r\n\r\n",
                               &head),
                     0);
    assert_true(head.is_ticket && head.resumes && !head.since_is_bad && !head.is_preflight);
    assert_string_equal(head.credential, "t-1");
    assert_string_equal(head.origin, "https://a.example");
    assert_int_equal(head.place.since.xid, 7);
    assert_int_equal(head.place.since.received_xid, 6);
    assert_int_equal(head.place.since.seconds, 5);
    assert_int_equal(
        head_read("GET /events?ticket=t HTTP/1.0\r\nAuthorization: bearer xoxp-1\r\n\r\n", &head),
        0);
    assert_false(head.is_ticket || head.resumes);
    assert_string_equal(head.credential, "xoxp-1");
}

static void test_heads_that_are_refused(void **state)
{
    static const char *const bad[] = {
        "GET /events HTTP/2.0\r\n\r\n",
        "GET /events\r\n\r\n",
        "GET /events HTTP/1.1\r\nno colon\r\n\r\n",
        "GET /events HTTP/1.1\r\nHost : h\r\n\r\n",
        "GET /events HTTP/1.1\r\nContent-Length: 1\r\n\r\n",
        "GET /events HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET /events HTTP/1.1\r\nAuthorization: Bearer a\r\nAuthorization: Bearer a\r\n\r\n",
        "GET /events HTTP/1.1\r\nOrigin: a b\r\n\r\n",
        "GET /events HTTP/1.1\r\nAuthorization: Bearer a b\r\n\r\n",
    };
    struct sse_head head;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(head_read(bad[i], &head), 400);
    assert_int_equal(head_read("PUT /events HTTP/1.1\r\n\r\n", &head), 405);
    assert_int_equal(head_read("GET /events HTTP/1.1\r\nLast-Event-ID: x\r\n\r\n", &head), 0);
    assert_true(head.resumes && head.since_is_bad);
    assert_int_equal(head_read("GET /events?since=x&since=e1.7.6.5.4 HTTP/1.1\r\n\r\n", &head), 0);
    assert_true(head.since_is_bad);
}

static int position_parse(const char *text, size_t length, struct position *ret_position,
                          struct progress *ret_progress)
{
    struct place place;
    int r = place_parse(text, length, &place);
    if (r < 0)
        return r;
    *ret_position = place.since;
    *ret_progress = place.progress;
    return 0;
}

static void test_positions(void **state)
{
    static const char *const bad[] = {"",           "e1",          "e1.",         "e1.1.1.1",
                                      "e1.1.1.1.",  "e1.1.1.1.1.", "e1.0.1.1.1",  "e1.01.1.1.1",
                                      "s1.1.1.1.1", "e1.1.2.1.1",  "e1.1.1.1.1 ", "e1.-1.1.1.1",
                                      "e1..1.1.1",  "e1.1.1.1.+1", "E1.1.1.1.1",  "e1.1.1.1.1x"};
    struct position position = {INT64_MAX, 12, 1795266528, 7, 0}, again;
    struct progress progress;
    char text[POSITION_SIZE];
    (void)state;
    position_print(&position, NULL, text);
    assert_string_equal(text, "e1.9223372036854775807.12.1795266528.7");
    assert_int_equal(position_parse(text, strlen(text), &again, &progress), 0);
    assert_memory_equal(&position, &again, sizeof again);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(position_parse(bad[i], strlen(bad[i]), &again, &progress) < 0);
    assert_int_equal(position_parse("e1.5.5.6.7.0.88", 15, &again, &progress), 0);
    assert_memory_equal(&again, (&(struct position){5, 5, 6, 7, 0}), sizeof again);
    assert_int_equal(progress.until.xid, 0);
    assert_int_equal(position_parse("e2.9.9.9999999999", 17, &again, &progress), 0);
    assert_memory_equal(&again, (&(struct position){1, 1, 1, 0, 0}), sizeof again);
}

static void test_whose_a_position_is(void **state)
{
    struct position position = {9, 9, 9, 0, position_owner("U1")}, again;
    struct progress progress = {.until = position, .channel_id = "C01", .number = 7}, parsed;
    char text[POSITION_SIZE];
    (void)state;
    position_print(&position, NULL, text);
    assert_int_equal(position_parse(text, strlen(text), &again, &parsed), 0);
    assert_memory_equal(&again, &position, sizeof again);
    assert_false(position_is_of_another(&again, "U1"));
    assert_true(position_is_of_another(&again, "U2"));
    position_print(&position, &progress, text);
    assert_int_equal(position_parse(text, strlen(text), &again, &parsed), 0);
    assert_memory_equal(&again, &position, sizeof again);
    assert_string_equal(parsed.channel_id, "C01");
    assert_int_equal(position_parse("e1.9.9.9.0", 10, &again, &parsed), 0);
    assert_false(position_is_of_another(&again, "U2"));
}

static void test_progress(void **state)
{
    struct position max = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, 0}, position;
    struct progress progress = {.until = max,
                                .channel_id = "GZZZZZZZZZ0123456789",
                                .part = PROGRESS_THREADS,
                                .number = INT64_MAX};
    struct progress again;
    char text[POSITION_SIZE];
    (void)state;
    position_print(&max, &progress, text);
    assert_true(strlen(text) < POSITION_SIZE - 1);
    assert_int_equal(position_parse(text, strlen(text), &position, &again), 0);
    assert_memory_equal(&position, &max, sizeof max);
    assert_memory_equal(&again.until, &max, sizeof max);
    assert_string_equal(again.channel_id, progress.channel_id);
    assert_int_equal(again.part, progress.part);
    assert_int_equal(again.number, progress.number);
    char later[2 * POSITION_SIZE];
    int length = snprintf(later, sizeof later, "%s.1", text); // of a later release
    assert_int_equal(position_parse(later, (size_t)length, &position, &again), 0);
    assert_int_equal(again.number, progress.number);
}

// The longest of all: as many channels as there may be, a backlog, an owner.
static void test_beyond(void **state)
{
    static const char *const none[] = {"e1.5.5.6.7.0.0.88",       "e1.5.5.6.7.0.9.674849.1",
                                       "e1.5.5.6.7.0.2.674849.1", "e1.5.5.6.7.0.1.674849.0",
                                       "e1.5.5.6.7.0.1.88.1",     "e1.5.5.6.7.0"};
    const struct position max = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, 1};
    struct place place = {.since = max, .progress = {.until = max, .number = INT64_MAX}};
    struct place again;
    char text[PLACE_SIZE];
    (void)state;
    place.since.owner = position_owner("U1");
    memset(place.progress.channel_id, 'Z', ID_LENGTH_MAX);
    place.progress.channel_id[0] = 'C';
    for (int i = 0; i < BEYOND_MAX; i++) {
        char id[ID_SIZE] = "CZZZZZZZZZZZZZZZZZZ0";
        id[ID_LENGTH_MAX - 1] = (char)('0' + i);
        assert_true(beyond_add(&place.beyond, id, INT64_MAX - i));
    }
    assert_false(beyond_add(&place.beyond, "C01", 1));
    place_print_all(&place, text);
    assert_true(strlen(text) < PLACE_SIZE - 1);
    assert_int_equal(place_parse(text, strlen(text), &again), 0);
    assert_int_equal(again.since.owner, place.since.owner);
    assert_string_equal(again.progress.channel_id, place.progress.channel_id);
    assert_int_equal(again.beyond.count, BEYOND_MAX);
    assert_int_equal(beyond_seq(&again.beyond, "CZZZZZZZZZZZZZZZZZZ3"), INT64_MAX - 3);
    assert_int_equal(beyond_seq(&again.beyond, "C01"), 0);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(place_parse(none[i], strlen(none[i]), &again), 0);
        assert_int_equal(again.beyond.count, 0);
        assert_int_equal(again.since.xid, 5);
    }
}

static void test_progress_without_sense_is_none(void **state)
{
    static const char *const none[] = {
        "e1.5.5.6.7.5.6.7.674849.0",
        "e1.5.5.6.7.4.6.7.674849.0.9",
        "e1.5.5.6.7.5.0.7.674849.0.9",
        "e1.5.5.6.7.5.6.7.67484.0.9",
        "e1.5.5.6.7.5.6.7.850.0.9",
        "e1.5.5.6.7.5.6.7.674899.0.9",
        "e1.5.5.6.7.5.6.7.674849.3.9",
        "e1.5.5.6.7.5.6.7.0.0.9",
        "e1.5.5.6.7.99999999999999999999.6.7.674849.0.9",
        "e1.5.5.6.7.5.6.7.67484848484848484848484848484848484848484848.0.9"};
    struct position position;
    struct progress progress;
    (void)state;
    assert_int_equal(position_parse("e1.5.5.6.7.5.6.7.674849.0.9", 27, &position, &progress), 0);
    assert_string_equal(progress.channel_id, "C01");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(position_parse(none[i], strlen(none[i]), &position, &progress), 0);
        assert_int_equal(progress.until.xid, 0);
        assert_int_equal(position.xid, 5);
    }
}

static void expect_event(const char *text, const char *expected)
{
    struct packet *packet = packet_new_event("hello", text, strlen(text), "i");
    assert_non_null(packet);
    assert_int_equal(packet->length, strlen(expected));
    assert_memory_equal(packet->data, expected, strlen(expected));
    packet_unref(packet);
}

static void test_events(void **state)
{
    (void)state;
    expect_event("{\"type\":\"hello\"}", "id: i\nevent: hello\ndata: {\"type\":\"hello\"}\n\n");
    expect_event("{\"a\":\n1\r}", "id: i\nevent: hello\ndata: {\"a\": 1 }\n\n");
}

static void test_packets_are_made_once(void **state)
{
    static const char text[] = "{}";
    struct packets packets = packets_of("hello", text, 2);
    (void)state;
    struct packet *frame = packets_frame(&packets), *event = packets_event(&packets, "i");
    assert_ptr_equal(frame, packets_frame(&packets));
    assert_ptr_equal(event, packets_event(&packets, "i"));
    assert_ptr_not_equal(frame, event);
    packets_done(&packets);
}

static void test_an_event_has_the_id_that_was_asked_for(void **state)
{
    static const char *const ids[] = {"e1.20", "e1.2", "e1.20", "e1.201", "e2.20"};
    struct packets packets = packets_of("hello", "{}", 2);
    char line[32];
    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const struct packet *event = packets_event(&packets, ids[i]);
        assert_non_null(event);
        snprintf(line, sizeof line, "id: %s\nevent:", ids[i]);
        assert_memory_equal(event->data, line, strlen(line));
    }
    packets_done(&packets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_paths_are_ours),
        cmocka_unit_test(test_a_whole_head),
        cmocka_unit_test(test_heads_that_are_refused),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_beyond),
        cmocka_unit_test(test_whose_a_position_is),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_progress_without_sense_is_none),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_packets_are_made_once),
        cmocka_unit_test(test_an_event_has_the_id_that_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
