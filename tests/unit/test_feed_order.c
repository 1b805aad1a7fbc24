// SPDX-License-Identifier: Apache-2.0
// A channel's events come in any order, twice, or not at all: what its feed makes of that. It is
// alone here, with hooks that write down what they are called for: no connection, no Postgres, no
// Redis.
#include "../../src/gateway/channel/feed.h"
#include "../../src/gateway/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { CALLS_MAX = 4096, HELD_MAX = 100 };

struct fixture {
    struct gateway gateway;
    struct feed *feed;
    char calls[CALLS_MAX]; // what the hooks were called for: "3 " the event 3, "gap4-6 ",
                           // "suspended "
    size_t length;
    int64_t sent_before; // sent_seq of the last time that all up to it was sent
    int gaps;            // how often something was missing
};

static struct fixture *fixture_of(const struct feed *feed)
{
    return (struct fixture *)(void *)((char *)feed->gateway - offsetof(struct fixture, gateway));
}

__attribute__((format(printf, 2, 3))) static void record(const struct feed *feed,
                                                         const char *format, ...)
{
    struct fixture *f = fixture_of(feed);
    va_list list;
    va_start(list, format);
    int length = vsnprintf(f->calls + f->length, sizeof f->calls - f->length, format, list);
    va_end(list);
    f->length += (size_t)length;
    assert_true(f->length < sizeof f->calls);
}

static void on_event(struct feed *feed, const struct feed_item *item)
{
    assert_int_equal(item->seq, feed->sent_seq + 1); // it is delivered before it counts as sent
    record(feed, "%d ", (int)item->seq);
}

static void on_skipped(struct feed *feed, int64_t to_seq)
{
    record(feed, "gap%d-%d ", (int)feed->sent_seq + 1, (int)to_seq);
}

static void on_sent(struct feed *feed)
{
    struct fixture *f = fixture_of(feed);
    assert_true(feed->sent_seq > f->sent_before);
    f->sent_before = feed->sent_seq;
}

static void on_gap(struct feed *feed)
{
    fixture_of(feed)->gaps++;
}

static void on_suspended(struct feed *feed)
{
    assert_true(feed->members_unknown);
    record(feed, "suspended ");
}

static void on_rewound(struct feed *feed)
{
    fixture_of(feed)->sent_before = feed->sent_seq;
    record(feed, "rewound ");
}

static void on_begin(struct feed *feed)
{
    record(feed, "begin ");
}

static void on_end(struct feed *feed)
{
    record(feed, "end ");
}

static const struct feed_hooks hooks = {
    .begin = on_begin,
    .event = on_event,
    .skipped = on_skipped,
    .sent = on_sent,
    .gap = on_gap,
    .suspended = on_suspended,
    .rewound = on_rewound,
    .end = on_end,
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->gateway.feed_hooks = &hooks;
    f->gateway.options.settings.gap_events_max = HELD_MAX;
    f->gateway.options.settings.gap_bytes = 1 << 20;
    assert_int_equal(loop_new(&f->gateway.loop), 0);
    f->feed = feed_open(&f->gateway, "T0000000001", "C0000000001", 0);
    assert_non_null(f->feed);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    feed_free(f->feed);
    assert_int_equal(f->gateway.held_bytes, 0);
    loop_free(f->gateway.loop);
    free(f);
    return 0;
}

static void offer(struct fixture *f, int64_t seq)
{
    char frame[64];
    int length = snprintf(frame, sizeof frame, "{\"seq\":%d}", (int)seq);
    struct event *event = event_new(EVENT_POST, strdup(frame), (size_t)length);
    assert_non_null(event);
    event->seq = seq;
    feed_offer(f->feed, event);
    event_unref(event);
}

static void offer_all(struct fixture *f, const char *seqs)
{
    for (char *end; *seqs; seqs = end + strspn(end, " "))
        offer(f, strtol(seqs, &end, 10));
}

static void expect(struct fixture *f, const char *calls)
{
    assert_string_equal(f->calls, calls);
    f->length = 0;
    f->calls[0] = '\0';
}

static void test_in_order_at_once(void **state)
{
    struct fixture *f = *state;
    offer_all(f, "1 2 3");
    expect(f, "begin 1 2 3 ");
    assert_int_equal(f->gaps, 0);
}

static void test_twice_is_once(void **state)
{
    struct fixture *f = *state;
    offer_all(f, "1 1 3 3 2 2 3 1");
    expect(f, "begin 1 2 3 ");
}

static void test_what_comes_early_waits(void **state)
{
    struct fixture *f = *state;
    offer_all(f, "4 2 3");
    expect(f, "begin ");
    assert_int_equal(f->feed->known_seq, 4);
    assert_true(f->gaps > 0);
    offer(f, 1);
    expect(f, "1 2 3 4 ");
}

// All orders of six events, each of them twice.
static void test_any_order(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 6, ORDERS = 720 };
    for (int order = 0; order < ORDERS; order++) {
        int64_t left[COUNT] = {1, 2, 3, 4, 5, 6}, before = f->feed->sent_seq;
        char calls[64] = "";
        for (int i = COUNT, rest = order; i > 0; rest /= i, i--) {
            int64_t seq = left[rest % i];
            left[rest % i] = left[i - 1];
            offer(f, before + seq);
            offer(f, before + seq);
        }
        for (int i = 1; i <= COUNT; i++) {
            size_t length = strlen(calls);
            (void)snprintf(calls + length, sizeof calls - length, "%d ", (int)before + i);
        }
        if (order == 0)
            memmove(f->calls, f->calls + strlen("begin "), f->length);
        expect(f, calls);
    }
}

static void test_a_gap_is_told_and_suspends(void **state)
{
    struct fixture *f = *state;
    offer_all(f, "1 4 5");
    feed_skip(f->feed, 3);
    expect(f, "begin 1 gap2-3 suspended ");
    feed_release(f->feed); // nothing before it is known who is a member
    offer(f, 6);
    expect(f, "");
    feed_continue(f->feed);
    expect(f, "4 5 6 ");
    assert_int_equal(f->feed->membership_seq, 3); // what was asked before the gap is no answer
}

static void test_what_was_told_as_a_gap_is_not_sent(void **state)
{
    struct fixture *f = *state;
    feed_skip(f->feed, 3);
    feed_continue(f->feed);
    offer_all(f, "2 3 4");
    expect(f, "begin gap1-3 suspended 4 ");
}

static void test_going_back(void **state)
{
    struct fixture *f = *state;
    offer_all(f, "1 2 3 5");
    expect(f, "begin 1 2 3 ");
    f->feed->gap_asked = true;
    feed_rewind(f->feed, 1);
    expect(f, "rewound ");
    assert_false(f->feed->gap_asked); // a page that is on its way begins too late
    offer_all(f, "2 3 4");
    expect(f, "2 3 4 5 ");
    assert_int_equal(f->feed->membership_seq, 3);
}

// What there is no room for is dropped, and read back like what never came.
static void test_no_more_than_there_is_room_for(void **state)
{
    struct fixture *f = *state;
    f->gateway.options.settings.gap_events_max = 2;
    offer_all(f, "2 3 4 1");
    expect(f, "begin 1 2 3 ");
    assert_int_equal(f->feed->known_seq, 4);
    f->gateway.options.settings.gap_events_max = HELD_MAX;
    f->gateway.options.settings.gap_bytes = 2 * (int64_t)strlen("{\"seq\":5}");
    offer_all(f, "5 6 7 4");
    expect(f, "4 5 6 ");
}

static void test_heard_of_but_not_here(void **state)
{
    struct fixture *f = *state;
    feed_note_head(f->feed, 2);
    assert_int_equal(f->gaps, 1);
    offer_all(f, "1 2");
    expect(f, "begin 1 2 ");
    f->gaps = 0;
    feed_note_head(f->feed, 2);
    assert_int_equal(f->gaps, 0);
}

static void test_one_feed_a_channel(void **state)
{
    struct fixture *f = *state;
    assert_ptr_equal(feed_open(&f->gateway, "T0000000001", "C0000000001", 9), f->feed);
    assert_ptr_equal(feed_find(&f->gateway, "C0000000001"), f->feed);
    assert_null(feed_find(&f->gateway, "C0000000002"));
    expect(f, "begin ");
    feed_free(f->feed);
    expect(f, "end ");
    f->feed = feed_open(&f->gateway, "T0000000001", "C0000000001", 9);
    offer_all(f, "9 10");
    expect(f, "begin 10 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_in_order_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_twice_is_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_comes_early_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_any_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_gap_is_told_and_suspends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_was_told_as_a_gap_is_not_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_going_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_more_than_there_is_room_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_heard_of_but_not_here, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_feed_a_channel, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
