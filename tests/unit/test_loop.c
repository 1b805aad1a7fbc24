// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/loop.h"

// What happened, letter by letter, and the loop it happened on.
struct scene {
    struct loop *loop;
    struct loop_timer *timer;
    struct loop_io *watch[2];
    int fd[2][2];
    char log[64];
    int count;
    int wanted;
    int64_t passed_us; // a time before the deadline of the timer that ran last
};

static void note(struct scene *scene, const char *letter)
{
    strncat(scene->log, letter, sizeof scene->log - strlen(scene->log) - 1);
}

static int setup(void **state)
{
    static struct scene scene;
    scene = (struct scene){0};
    *state = &scene;
    return loop_new(&scene.loop);
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    for (int i = 0; i < 2; i++) {
        loop_io_free(scene->watch[i]);
        if (scene->fd[i][0]) {
            close(scene->fd[i][0]);
            close(scene->fd[i][1]);
        }
    }
    loop_timer_free(scene->timer);
    loop_free(scene->loop);
    return 0;
}

static void stop(void *arg)
{
    struct scene *scene = arg;
    loop_stop(scene->loop);
}

static void note_a(void *arg)
{
    note(arg, "a");
}

static void note_b(void *arg)
{
    note(arg, "b");
}

static void note_c(void *arg)
{
    note(arg, "c");
}

static void note_timer_and_stop(void *arg)
{
    note(arg, "t");
    stop(arg);
}

static void timers_run_in_the_order_of_their_deadlines(void **state)
{
    struct scene *scene = *state;
    struct loop_timer *a, *b;
    assert_int_equal(loop_timer_new(scene->loop, note_a, scene, &a), 0);
    assert_int_equal(loop_timer_new(scene->loop, note_b, scene, &b), 0);
    assert_int_equal(loop_timer_new(scene->loop, note_timer_and_stop, scene, &scene->timer), 0);
    loop_timer_set(scene->timer, 30);
    loop_timer_set(a, 20);
    loop_timer_set(b, 5);
    loop_timer_set(b, 10);
    loop_run(scene->loop);
    assert_string_equal(scene->log, "bat");
    loop_timer_free(a);
    loop_timer_free(b);
}

static void cleared_timers_do_not_run(void **state)
{
    struct scene *scene = *state;
    struct loop_timer *a, *b;
    assert_int_equal(loop_timer_new(scene->loop, note_a, scene, &a), 0);
    assert_int_equal(loop_timer_new(scene->loop, note_b, scene, &b), 0);
    assert_int_equal(loop_timer_new(scene->loop, note_timer_and_stop, scene, &scene->timer), 0);
    loop_timer_set(a, 1);
    loop_timer_set(b, 2);
    loop_timer_set(scene->timer, 10);
    loop_timer_clear(a);
    loop_timer_clear(a);
    loop_timer_free(b);
    loop_run(scene->loop);
    assert_string_equal(scene->log, "t");
    loop_timer_free(a);
}

static void a_timer_never_runs_early(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(loop_timer_new(scene->loop, stop, scene, &scene->timer), 0);
    int64_t begin_us = clock_monotonic_us();
    loop_timer_set(scene->timer, 7);
    loop_run(scene->loop);
    assert_true(clock_monotonic_us() - begin_us >= 7000);
}

// A deterministic walk: numbers that look random enough to shake a heap.
static uint32_t next_number(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

struct stamp {
    struct scene *scene;
    struct loop_timer *timer;
    int64_t delay_ms;
    int64_t earliest_us; // the deadline lies between these two
    int64_t latest_us;
};

static void stamp_set(struct stamp *stamp)
{
    stamp->earliest_us = clock_monotonic_us() + stamp->delay_ms * 1000;
    loop_timer_set(stamp->timer, stamp->delay_ms);
    stamp->latest_us = clock_monotonic_us() + stamp->delay_ms * 1000;
}

static void check_order(void *arg)
{
    struct stamp *stamp = arg;
    assert_true(stamp->latest_us >= stamp->scene->passed_us);
    stamp->scene->passed_us = stamp->earliest_us;
    if (--stamp->scene->count == 0)
        loop_stop(stamp->scene->loop);
}

static void many_timers_set_cleared_and_freed_stay_in_order(void **state)
{
    struct scene *scene = *state;
    static struct stamp stamps[500];
    uint32_t seed = 42;
    for (int i = 0; i < 500; i++) {
        stamps[i] = (struct stamp){.scene = scene};
        assert_int_equal(loop_timer_new(scene->loop, check_order, &stamps[i], &stamps[i].timer), 0);
    }
    for (int i = 0; i < 2000; i++) {
        struct stamp *stamp = &stamps[next_number(&seed) % 500];
        if (i % 5 == 0)
            loop_timer_clear(stamp->timer);
        stamp->delay_ms = next_number(&seed) % 8 * 10;
        stamp_set(stamp);
    }
    for (int i = 0; i < 500; i++) {
        if (i % 3 == 0)
            loop_timer_free(TAKE(stamps[i].timer));
        else
            scene->count++;
    }
    for (int i = 0; i < 500; i++)
        if (stamps[i].timer)
            stamp_set(&stamps[i]);
    loop_run(scene->loop);
    assert_int_equal(scene->count, 0);
    for (int i = 0; i < 500; i++)
        loop_timer_free(stamps[i].timer);
}

static void a_turn_runs_inbox_gather_idle_deferred(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(loop_idle_add(scene->loop, note_c, scene), 0);
    assert_int_equal(loop_gather_add(scene->loop, note_b, scene), 0);
    loop_defer(scene->loop, note_timer_and_stop, scene);
    assert_int_equal(loop_post(scene->loop, note_a, scene), 0);
    loop_run(scene->loop);
    assert_string_equal(scene->log, "abctbc"); // loop_run() itself ends with one more such round
}

static void again_until_three(void *arg)
{
    struct scene *scene = arg;
    if (++scene->count < 3)
        loop_again(scene->loop);
    else
        loop_stop(scene->loop);
}

static void again_makes_another_turn_without_waiting(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(loop_idle_add(scene->loop, again_until_three, scene), 0);
    loop_again(scene->loop);
    loop_run(scene->loop); // would wait for ever otherwise: there is neither timer nor event
    assert_true(scene->count >= 3);
}

static void count_message(void *arg)
{
    struct scene *scene = arg;
    if (++scene->count == scene->wanted)
        loop_stop(scene->loop);
}

enum { MESSAGES = 20000 };

static void *post_messages(void *arg)
{
    struct scene *scene = arg;
    for (int i = 0; i < MESSAGES; i++)
        if (loop_post(scene->loop, count_message, scene) < 0)
            return arg;
    return NULL;
}

static void no_message_of_other_threads_is_lost(void **state)
{
    struct scene *scene = *state;
    scene->wanted = 2 * MESSAGES;
    pthread_t first, second;
    assert_int_equal(pthread_create(&first, NULL, post_messages, scene), 0);
    assert_int_equal(pthread_create(&second, NULL, post_messages, scene), 0);
    loop_run(scene->loop);
    void *failed[2];
    pthread_join(first, &failed[0]);
    pthread_join(second, &failed[1]);
    assert_null(failed[0]);
    assert_null(failed[1]);
    assert_int_equal(scene->count, 2 * MESSAGES);
}

static void what_was_posted_before_the_stop_still_runs(void **state)
{
    struct scene *scene = *state;
    loop_stop(scene->loop);
    assert_int_equal(loop_post(scene->loop, note_a, scene), 0);
    loop_run(scene->loop);
    assert_string_equal(scene->log, "a");
}

static void free_both(void *arg, uint32_t events)
{
    struct scene *scene = arg;
    assert_true(events & EPOLLIN);
    note(scene, "r");
    loop_io_free(TAKE(scene->watch[0]));
    loop_io_free(TAKE(scene->watch[1]));
    loop_stop(scene->loop);
}

static void an_event_for_a_watch_freed_in_the_same_turn_is_not_delivered(void **state)
{
    struct scene *scene = *state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, scene->fd[i]), 0);
        assert_int_equal(write(scene->fd[i][1], "x", 1), 1);
        assert_int_equal(
            loop_io_new(scene->loop, scene->fd[i][0], EPOLLIN, free_both, scene, &scene->watch[i]),
            0);
    }
    loop_run(scene->loop);
    assert_string_equal(scene->log, "r");
}

static void write_then_hang_up(void *arg, uint32_t events)
{
    struct scene *scene = arg;
    note(scene, events & EPOLLOUT ? "w" : "r");
    if (events & EPOLLOUT)
        loop_io_set(scene->watch[0], EPOLLIN);
    else
        loop_stop(scene->loop);
}

static void a_watch_waits_for_what_was_set_last(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, scene->fd[0]), 0);
    assert_int_equal(loop_io_new(scene->loop, scene->fd[0][0], EPOLLOUT, write_then_hang_up, scene,
                                 &scene->watch[0]),
                     0);
    assert_int_equal(write(scene->fd[0][1], "x", 1), 1);
    loop_run(scene->loop);
    assert_string_equal(scene->log, "wr");
}

enum { CROWD = 300 };

struct peer {
    struct scene *scene;
    struct loop_io *watch;
    int fd[2];
};

static void peer_leave(void *arg, uint32_t events)
{
    struct peer *peer = arg;
    assert_true(events & EPOLLHUP);
    loop_io_free(peer->watch);
    close(peer->fd[0]);
    if (++peer->scene->count == CROWD)
        loop_stop(peer->scene->loop);
}

static void answer_take(void *arg, uint32_t events)
{
    struct scene *scene = arg;
    assert_true(events & EPOLLIN);
    note(scene, scene->count < CROWD ? "a" : "-");
    loop_io_free(TAKE(scene->watch[0]));
}

static void what_the_loop_asked_does_not_wait_for_a_crowd_that_leaves(void **state)
{
    struct scene *scene = *state;
    static struct peer peers[CROWD];
    for (int i = 0; i < CROWD; i++) {
        peers[i].scene = scene;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, peers[i].fd), 0);
        close(peers[i].fd[1]);
        assert_int_equal(loop_io_new_peer(scene->loop, peers[i].fd[0], EPOLLIN, peer_leave,
                                          &peers[i], &peers[i].watch),
                         0);
    }
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, scene->fd[0]), 0);
    assert_int_equal(write(scene->fd[0][1], "x", 1), 1);
    assert_int_equal(
        loop_io_new(scene->loop, scene->fd[0][0], EPOLLIN, answer_take, scene, &scene->watch[0]),
        0);
    loop_run(scene->loop); // until all have left
    assert_string_equal(scene->log, "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(timers_run_in_the_order_of_their_deadlines, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(cleared_timers_do_not_run, setup, teardown),
        cmocka_unit_test_setup_teardown(a_timer_never_runs_early, setup, teardown),
        cmocka_unit_test_setup_teardown(many_timers_set_cleared_and_freed_stay_in_order, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_turn_runs_inbox_gather_idle_deferred, setup, teardown),
        cmocka_unit_test_setup_teardown(again_makes_another_turn_without_waiting, setup, teardown),
        cmocka_unit_test_setup_teardown(no_message_of_other_threads_is_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_posted_before_the_stop_still_runs, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            an_event_for_a_watch_freed_in_the_same_turn_is_not_delivered, setup, teardown),
        cmocka_unit_test_setup_teardown(a_watch_waits_for_what_was_set_last, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_loop_asked_does_not_wait_for_a_crowd_that_leaves,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
