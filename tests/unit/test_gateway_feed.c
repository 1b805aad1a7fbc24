// SPDX-License-Identifier: Apache-2.0
// What sockets see of a channel's events that come in any order, twice, or not at all. There is
// neither Redis nor Postgres: nothing can be read back.
#include "../../src/gateway/channel/feed.h"
#include "../../src/gateway/channel/gap.h"
#include "../../src/gateway/channel/subscribers.h"
#include "../../src/gateway/connection/connection.h"
#include "../../src/gateway/core.h"
#include "../../src/gateway/gateway_session.h"
#include "../../src/gateway/watermark.h"
#include "../../src/gateway/websocket/websocket.h"

#include "base/error.h"
#include "base/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { LOOK_MS = 5, LOOKS_MAX = 2000, DATA_MAX = 1 << 16 };

struct fixture {
    struct loop *loop;
    struct store *store;
    struct cache *cache;
    struct gateway *gateway;
    struct feed *feed;
    struct loop_timer *look;
    int looks;
    int fd[2];              // the peers of a native and another socket
    char data[2][DATA_MAX]; // what they got
    size_t length[2];
    const char *wanted[2];  // what the run waits for, in their data
    bool members_confirmed; // as Postgres would, which is not there
};

static void on_call(void *arg, struct request *request)
{
    (void)arg;
    request_reply_error(request, -ERROR_UNAVAILABLE);
}

static struct connection *socket_open(struct fixture *f, int which, bool native)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    f->fd[which] = pair[1];
    struct connection *c = connection_adopt(f->gateway, pair[0]);
    assert_non_null(c);
    assert_int_equal(gateway_sockets(f->gateway), which + 1);
    (void)snprintf(c->actor.workspace_id, sizeof c->actor.workspace_id, "T0000000001");
    (void)snprintf(c->actor.user_id, sizeof c->actor.user_id, "U000000000%d", which);
    c->native = native;
    assert_int_equal(websocket_make(c), 0);
    assert_int_equal(session_enter_user(c), 0);
    assert_int_equal(subscribers_add(f->feed, c, 0), 0);
    websocket_hello(c, "");
    return c;
}

static void look(void *arg)
{
    struct fixture *f = arg;
    bool all = true;
    for (int i = 0; i < 2; i++) {
        ssize_t length =
            read(f->fd[i], f->data[i] + f->length[i], sizeof f->data[i] - f->length[i] - 1);
        if (length > 0)
            f->length[i] += (size_t)length;
        all = all && memmem(f->data[i], f->length[i], f->wanted[i], strlen(f->wanted[i]));
    }
    if (f->members_confirmed)
        feed_continue(f->feed);
    if (all || ++f->looks == LOOKS_MAX)
        loop_stop(f->loop);
    loop_timer_set(f->look, LOOK_MS);
}

static void run_until(struct fixture *f, const char *native, const char *other)
{
    f->wanted[0] = native;
    f->wanted[1] = other;
    assert_int_equal(loop_timer_new(f->loop, look, f, &f->look), 0);
    loop_timer_set(f->look, LOOK_MS);
    loop_run(f->loop);
    assert_true(f->looks < LOOKS_MAX);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct store_options store = {.database_url = "postgres:///none?host=/nonexistent",
                                  .connect_timeout_ms = 1000,
                                  .statement_timeout_ms = 1000,
                                  .queue_max = 100,
                                  .queue_bytes = 1 << 20};
    struct cache_options cache = {.redis_url = "unix:///nonexistent/redis",
                                  .library = "",
                                  .library_name = "none",
                                  .timeout_ms = 1000,
                                  .pending_max = 100,
                                  .pending_bytes = 1 << 20};
    struct gateway_options gateway = {
        .settings =
            {
                .socket_queue_max_bytes = 1 << 20,
                .gap_bytes = 1 << 20,
                .socket_message_max_bytes = 65536,
                .ping_interval_ms = 60000,
                .pong_timeout_ms = 60000,
                .socket_frames_per_s = 64,
                .socket_frames_burst = 256,
                .tail_check_ms = 60000,
                .gap_delay_ms = 10,
                .gap_timeout_ms = 100,
                .gap_events_max = 100,
                .gap_reads_max = 10,
                .token_check_ms = 60000,
                .channel_linger_ms = 60000,
                .presence_ttl_s = 60,
            },
        .cors_origins = "",
        .on_call = on_call,
    };
    assert_int_equal(loop_new(&f->loop), 0);
    assert_int_equal(store_new(f->loop, &store, &f->store), 0);
    assert_int_equal(cache_new(f->loop, &cache, &f->cache), 0);
    assert_int_equal(gateway_new(f->loop, f->store, f->cache, &gateway, &f->gateway), 0);
    f->feed = feed_open(f->gateway, "T0000000001", "C0000000001", 0);
    assert_non_null(f->feed);
    (void)socket_open(f, 0, true);
    (void)socket_open(f, 1, false);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    loop_timer_free(f->look);
    gateway_free(f->gateway);
    store_free(f->store);
    cache_free(f->cache);
    loop_free(f->loop);
    close(f->fd[0]);
    close(f->fd[1]);
    free(f);
    return 0;
}

static void offer(struct fixture *f, enum event_kind kind, const char *user, int64_t seq)
{
    char frame[64];
    int length = snprintf(frame, sizeof frame, "{\"seq\":%d}", (int)seq);
    struct event *event = event_new(kind, strdup(frame), (size_t)length);
    (void)snprintf(event->channel_id, sizeof event->channel_id, "C0000000001");
    (void)snprintf(event->user_id, sizeof event->user_id, "%s", user);
    event->seq = seq;
    feed_offer(f->feed, event);
    event_unref(event);
}

static void post(struct fixture *f, int64_t seq)
{
    offer(f, EVENT_POST, "U0000000009", seq);
}

// The frames of a socket, without hello and their headers (all are short).
static void expect_frames(struct fixture *f, int which, const char *const *frames, size_t count)
{
    const char *at = f->data[which], *end = f->data[which] + f->length[which];
    for (size_t i = 0; i <= count; i++) {
        const char *frame = i == 0 ? "{\"type\":\"hello\"}" : frames[i - 1];
        assert_true(at + 2 <= end);
        assert_int_equal((unsigned char)at[0], 0x81);
        assert_int_equal(at[1], strlen(frame));
        assert_memory_equal(at + 2, frame, strlen(frame));
        at += 2 + strlen(frame);
    }
    assert_ptr_equal(at, end);
}

static void test_any_order_and_twice(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 60 };
    int64_t seqs[2 * COUNT];
    char texts[COUNT][32];
    const char *frames[COUNT];
    for (int i = 0; i < 2 * COUNT; i++)
        seqs[i] = i % COUNT + 1;
    uint32_t random = 1;
    for (int i = 2 * COUNT - 1; i > 0; i--) {
        random = random * 1664525 + 1013904223;
        int other = (int)(random >> 8) % (i + 1);
        int64_t seq = seqs[i];
        seqs[i] = seqs[other];
        seqs[other] = seq;
    }
    for (int i = 0; i < 2 * COUNT; i++)
        post(f, seqs[i]);
    run_until(f, "{\"seq\":60}", "{\"seq\":60}");
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "{\"seq\":%d}", i + 1);
        frames[i] = texts[i];
    }
    expect_frames(f, 0, frames, COUNT);
    expect_frames(f, 1, frames, COUNT);
}

static void test_a_gap_is_told(void **state)
{
    struct fixture *f = *state;
    f->members_confirmed = true;
    post(f, 1);
    post(f, 1); // what is there already does not hide the gap behind it
    post(f, 5);
    post(f, 6);
    run_until(f, "{\"seq\":6}", "gap");
    static const char *const frames[] = {
        "{\"seq\":1}",
        "{\"type\":\"gap\",\"channel\":\"C0000000001\",\"from_seq\":2,\"to_seq\":4}",
        "{\"seq\":5}",
        "{\"seq\":6}",
    };
    expect_frames(f, 0, frames, 4);
    // The other one is closed with 1012, and gets nothing behind the gap.
    static const char end[] = "\x88\x05\x03\xf4gap";
    assert_memory_equal(f->data[1] + f->length[1] - (sizeof end - 1), end, sizeof end - 1);
    assert_null(memmem(f->data[1], f->length[1], "{\"seq\":5}", 9));
}

// With room for three reads of four events.
static void bounds_set(struct fixture *f)
{
    f->gateway->options.settings.gap_timeout_ms = 3600 * 1000;
    f->gateway->options.settings.gap_events_max = 4;
    f->gateway->options.settings.gap_reads_max = 3;
}

static void test_a_gap_beyond_the_bound_is_told_at_once(void **state)
{
    struct fixture *f = *state;
    bounds_set(f);
    post(f, 14);
    run_until(f, "gap", "gap");
    static const char *const frames[] = {
        "{\"type\":\"gap\",\"channel\":\"C0000000001\",\"from_seq\":1,\"to_seq\":13}",
    };
    expect_frames(f, 0, frames, 1);
    // What comes after it waits until it is known who is still a member.
    assert_true(f->feed->members_unknown);
    assert_int_equal(f->feed->sent_seq, 13);
    assert_int_equal(f->feed->membership_seq, 13); // what was asked before the gap is no answer
}

static void test_a_gap_at_the_bound_is_waited_for(void **state)
{
    struct fixture *f = *state;
    char text[32];
    bounds_set(f);
    post(f, 13);
    for (int seq = 1; seq < 13; seq++)
        post(f, seq);
    run_until(f, "{\"seq\":13}", "{\"seq\":13}");
    for (int which = 0; which < 2; which++) {
        assert_null(memmem(f->data[which], f->length[which], "gap", 3));
        for (int seq = 1; seq <= 13; seq++) {
            int length = snprintf(text, sizeof text, "{\"seq\":%d}", seq);
            assert_non_null(memmem(f->data[which], f->length[which], text, (size_t)length));
        }
    }
}

// Three events of as many bytes wait for two that are missing.
static void held_in_bytes(struct fixture *f, int64_t gap_bytes)
{
    f->gateway->options.settings.gap_timeout_ms = 3600 * 1000;
    f->gateway->options.settings.gap_bytes = gap_bytes;
    for (int seq = 5; seq >= 3; seq--)
        post(f, seq);
}

static void test_events_of_as_many_bytes_as_may_are_held(void **state)
{
    struct fixture *f = *state;
    static const char *const frames[] = {"{\"seq\":1}", "{\"seq\":2}", "{\"seq\":3}", "{\"seq\":4}",
                                         "{\"seq\":5}"};
    int64_t before = metric_value(METRIC_HELD_FULL);
    int64_t bytes = (int64_t)(3 * strlen(frames[0]));
    held_in_bytes(f, bytes);
    assert_int_equal(f->gateway->held_bytes, bytes);
    post(f, 1);
    post(f, 2);
    run_until(f, frames[4], frames[4]);
    expect_frames(f, 0, frames, 5);
    expect_frames(f, 1, frames, 5);
    assert_int_equal(metric_value(METRIC_HELD_FULL), before);
    assert_int_equal(f->gateway->held_bytes, 0);
}

static void test_one_byte_more_is_to_be_read_back(void **state)
{
    struct fixture *f = *state;
    static const char *const frames[] = {"{\"seq\":1}", "{\"seq\":2}"};
    int64_t before = metric_value(METRIC_HELD_FULL);
    held_in_bytes(f, (int64_t)(3 * strlen(frames[0])) - 1);
    assert_int_equal(metric_value(METRIC_HELD_FULL), before + 1);
    post(f, 1);
    post(f, 2);
    run_until(f, frames[1], frames[1]);
    expect_frames(f, 0, frames, 2); // the third was the last to come
    assert_int_equal(f->feed->sent_seq, 2);
    assert_int_equal(f->feed->known_seq, 5);
}

// Gives a socket that nobody reads more than the kernel takes; how much of it is left.
static size_t backlog_make(struct connection *c)
{
    enum { LENGTH = 1 << 16 };
    static char text[LENGTH];
    (void)setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &(int){4096}, sizeof(int));
    connection_send_text(c, "message", text, LENGTH);
    assert_int_equal(outlet_flush(&c->outlet, c->fd), 1);
    return outlet_unsent(&c->outlet);
}

static void test_a_queue_at_its_bound_takes_one_more(void **state)
{
    struct fixture *f = *state;
    struct connection *c = LIST_ITEM(f->gateway->connections.previous, struct connection, link);
    int64_t before = metric_value(METRIC_SOCKETS_SLOW);
    f->gateway->options.settings.socket_queue_max_bytes = (int64_t)backlog_make(c);
    connection_send_text(c, "message", "{}", 2);
    assert_int_equal(c->state, CONNECTION_OPEN);
    assert_int_equal(metric_value(METRIC_SOCKETS_SLOW), before);

    f->gateway->options.settings.socket_queue_max_bytes = (int64_t)outlet_unsent(&c->outlet) - 1;
    connection_send_text(c, "message", "{}", 2);
    assert_int_equal(c->state, CONNECTION_CLOSE_DUE);
    assert_int_equal(metric_value(METRIC_SOCKETS_SLOW), before + 1);
}

static void test_no_other_gap_before_it_is_known_who_is_a_member(void **state)
{
    struct fixture *f = *state;
    bounds_set(f);
    feed_note_head(f->feed, 13);
    run_until(f, "gap", "gap");
    f->gateway->options.settings.gap_timeout_ms = 0;
    feed_note_head(f->feed, 14);
    gap_on_timer(f->gateway);
    assert_int_equal(f->feed->sent_seq, 13);
    feed_continue(f->feed);
    gap_on_timer(f->gateway);
    assert_int_equal(f->feed->sent_seq, 14);
}

static void test_a_gap_is_not_told_to_who_came_behind_it(void **state)
{
    struct fixture *f = *state;
    static const char *const frames[] = {
        "{\"type\":\"gap\",\"channel\":\"C0000000001\",\"from_seq\":1,\"to_seq\":13}",
        "{\"seq\":14}",
    };
    bounds_set(f);
    f->members_confirmed = true;
    f->feed->subscribers[1].from_seq = 13;
    post(f, 14);
    run_until(f, frames[1], frames[1]);
    expect_frames(f, 1, &frames[1], 1);
    assert_non_null(memmem(f->data[0], f->length[0], frames[0], strlen(frames[0])));
}

static void test_leave_and_join(void **state)
{
    struct fixture *f = *state;
    static const char *const stays[] = {"{\"seq\":1}", "{\"seq\":2}", "{\"seq\":3}", "{\"seq\":4}"};
    static const char *const comes_back[] = {"{\"seq\":1}",
                                             "{\"type\":\"channel_left\",\"channel\":"
                                             "\"C0000000001\",\"event_ts\":\"0000000000.000000\"}",
                                             "{\"seq\":3}", "{\"seq\":4}"};
    offer(f, EVENT_LEAVE, "U0000000001", 1);
    post(f, 2);
    offer(f, EVENT_JOIN, "U0000000001", 3);
    post(f, 4);
    run_until(f, "{\"seq\":4}", "{\"seq\":4}");
    expect_frames(f, 0, stays, 4);
    expect_frames(f, 1, comes_back, 4);
}

static void test_going_back_sends_nothing_again(void **state)
{
    struct fixture *f = *state;
    static const char *const frames[] = {"{\"seq\":5}"};
    f->feed->sent_seq = f->feed->known_seq = 4; // as of one that was followed from there on
    f->feed->gap_asked = f->gateway->watermark->is_whole = true;
    feed_rewind(f->feed, 0);
    // What is on its way was asked for by one who was further.
    assert_false(f->feed->gap_asked);
    assert_false(f->gateway->watermark->is_whole);
    offer(f, EVENT_LEAVE, "U0000000001", 1);
    offer(f, EVENT_JOIN, "U0000000001", 2);
    for (int seq = 3; seq <= 5; seq++)
        post(f, seq);
    run_until(f, frames[0], frames[0]);
    expect_frames(f, 0, frames, 1);
    expect_frames(f, 1, frames, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_order_and_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_gap_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_gap_beyond_the_bound_is_told_at_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_gap_at_the_bound_is_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_gap_is_not_told_to_who_came_behind_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_no_other_gap_before_it_is_known_who_is_a_member, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_events_of_as_many_bytes_as_may_are_held, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_one_byte_more_is_to_be_read_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_queue_at_its_bound_takes_one_more, setup, teardown),
        cmocka_unit_test_setup_teardown(test_leave_and_join, setup, teardown),
        cmocka_unit_test_setup_teardown(test_going_back_sends_nothing_again, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
