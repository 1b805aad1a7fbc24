// SPDX-License-Identifier: Apache-2.0
// The event loop: epoll, an inbox for other threads, and callbacks at the end of each turn.
#include "base/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"

#include "loop_internal.h"

enum { EVENTS_MAX = 256, PEERS_MAX = 64, INBOX_MAX = 1 << 20 };

struct loop_io {
    uint32_t tag;
    struct loop *loop;
    loop_ready_fn *fn; // NULL once freed: events already fetched for this watch are then dropped
    void *arg;
    int epoll_fd; // the loop's own, or its peers_fd
    int fd;
    uint32_t events;
    struct loop_io *next_dead;
};

struct loop_calls {
    struct {
        loop_fn *fn;
        void *arg;
    } *call;
    size_t count;
    size_t capacity;
};

struct loop {
    struct loop_core core;
    uint32_t tag;
    struct loop_calls gather;
    struct loop_calls idle;
    struct loop_calls deferred;
    struct loop_calls running; // memory of the inbox while its calls run
    struct loop_io *dead;
    struct epoll_event events[EVENTS_MAX];
    int64_t now_us;
    int epoll_fd;
    int peers_fd;          // a nested epoll set for peers' connections
    struct loop_io *peers; // watches peers_fd
    bool peers_ready;
    bool again;

    int wake_fd;
    atomic_bool stopping;
    pthread_mutex_t inbox_lock; // guards only the inbox
    struct loop_calls inbox;
};

static bool loop_is_mine(const struct loop *loop)
{
    return loop_core_is_mine(&loop->core);
}

static size_t capacity_next(const struct loop_calls *calls)
{
    return calls->capacity ? 2 * calls->capacity : 16;
}

// Makes room for one more call; false if out of memory.
static bool calls_grow(struct loop_calls *calls)
{
    if (calls->count < calls->capacity)
        return true;
    size_t capacity = capacity_next(calls);
    void *call = reallocarray(calls->call, capacity, sizeof *calls->call);
    if (!call)
        return false;
    calls->call = call;
    calls->capacity = capacity;
    return true;
}

static bool calls_append(struct loop_calls *calls, loop_fn *fn, void *arg)
{
    ASSERT(fn);
    if (!calls_grow(calls))
        return false;
    calls->call[calls->count].fn = fn;
    calls->call[calls->count].arg = arg;
    calls->count++;
    return true;
}

// Runs all calls, including those appended meanwhile.
static void calls_run(const struct loop_calls *calls)
{
    for (size_t i = 0; i < calls->count; i++)
        calls->call[i].fn(calls->call[i].arg);
}

static void peers_on_ready(void *arg, uint32_t events)
{
    struct loop *loop = CAST(loop, arg);
    (void)events;
    loop->peers_ready = true;
}

// The eventfd is edge-triggered and never read: each write is an edge.
static int loop_open(struct loop *loop)
{
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->peers_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    if (loop->epoll_fd < 0 || loop->peers_fd < 0 || loop->wake_fd < 0 ||
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event) < 0)
        return -ERROR_UNAVAILABLE;
    return loop_io_new(loop, loop->peers_fd, EPOLLIN, peers_on_ready, loop, &loop->peers);
}

int loop_new(struct loop **ret_loop)
{
    struct loop *loop = TAGGED_NEW(loop);
    if (!loop)
        return -ERROR_MEMORY;
    pthread_mutex_init(&loop->inbox_lock, NULL);
    loop->now_us = clock_monotonic_us();
    loop->core.tag = TAG(loop_core);
    int r = loop_open(loop);
    if (r < 0) {
        loop_free(loop);
        return r;
    }
    *ret_loop = loop;
    return 0;
}

static void loop_free_dead(struct loop *loop)
{
    while (loop->dead) {
        struct loop_io *watch = loop->dead;
        loop->dead = watch->next_dead;
        TAGGED_FREE(watch);
    }
}

static void loop_run_deferred(struct loop *loop)
{
    calls_run(&loop->deferred);
    loop->deferred.count = 0;
    loop_free_dead(loop);
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    ASSERT(!loop->core.is_running);
    loop_io_free(loop->peers);
    loop_run_deferred(loop);
    ASSERT(loop->core.timers.count == 0);
    if (loop->epoll_fd >= 0)
        close(loop->epoll_fd);
    if (loop->peers_fd >= 0)
        close(loop->peers_fd);
    if (loop->wake_fd >= 0)
        close(loop->wake_fd);
    free(loop->core.timers.heap);
    free(loop->gather.call);
    free(loop->idle.call);
    free(loop->deferred.call);
    free(loop->running.call);
    free(loop->inbox.call);
    pthread_mutex_destroy(&loop->inbox_lock);
    TAGGED_FREE(loop);
}

static void loop_wake(struct loop *loop)
{
    ssize_t r = write(loop->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
    ASSERT(r == sizeof(uint64_t));
}

int loop_post(struct loop *loop, loop_fn *fn, void *arg)
{
    pthread_mutex_lock(&loop->inbox_lock);
    // Only the thread that fills an empty inbox wakes the loop, which takes the whole inbox at
    // once.
    bool wake = loop->inbox.count == 0;
    int r = -ERROR_BUSY;
    if (loop->inbox.count < INBOX_MAX)
        r = calls_append(&loop->inbox, fn, arg) ? 0 : -ERROR_MEMORY;
    pthread_mutex_unlock(&loop->inbox_lock);
    if (r == 0 && wake)
        loop_wake(loop);
    return r;
}

void loop_stop(struct loop *loop)
{
    atomic_store(&loop->stopping, true);
    loop_wake(loop);
}

static void loop_run_inbox(struct loop *loop)
{
    pthread_mutex_lock(&loop->inbox_lock);
    struct loop_calls taken = loop->inbox;
    loop->inbox = loop->running;
    pthread_mutex_unlock(&loop->inbox_lock);
    calls_run(&taken);
    taken.count = 0;
    loop->running = taken;
}

// The timeout for epoll: 0 if there is more to do, -1 for none.
static int loop_timeout_ms(const struct loop *loop)
{
    if (loop->again)
        return 0;
    if (loop->core.timers.count == 0)
        return -1;
    int64_t left_us = loop_timers_next_us(&loop->core.timers) - clock_monotonic_us();
    if (left_us <= 0)
        return 0;
    int64_t left_ms = (left_us + 999) / 1000;
    return left_ms < INT32_MAX ? (int)left_ms : INT32_MAX;
}

// A loop that was prevented from starting a turn (no CPU, a stopped process) has an overdue timer.
static void loop_count_stall(const struct loop *loop, int64_t due_us)
{
    int64_t began_us = due_us < loop->now_us ? due_us : loop->now_us;
    metric_time(METRIC_TIMES_LOOP_STALL, clock_monotonic_us() - began_us);
}

static int64_t loop_due_us(const struct loop *loop)
{
    return loop->core.timers.count > 0 ? loop_timers_next_us(&loop->core.timers) : INT64_MAX;
}

static void loop_deliver(struct loop *loop, int count)
{
    for (int i = 0; i < count; i++) {
        if (!loop->events[i].data.ptr) // the wake-up by another thread
            continue;
        const struct loop_io *watch = CAST(loop_io, loop->events[i].data.ptr);
        if (watch->fn)
            watch->fn(watch->arg, loop->events[i].events);
    }
}

// Remaining events make the next turn start at once.
static void loop_deliver_peers(struct loop *loop)
{
    if (!loop->peers_ready)
        return;
    loop->peers_ready = false;
    loop_deliver(loop, epoll_wait(loop->peers_fd, loop->events, PEERS_MAX, 0));
}

static void loop_turn(struct loop *loop)
{
    int count = epoll_wait(loop->epoll_fd, loop->events, EVENTS_MAX, loop_timeout_ms(loop));
    int64_t due_us = loop_due_us(loop);
    loop->now_us = clock_monotonic_us();
    loop->again = false;
    loop_deliver(loop, count);
    loop_deliver_peers(loop);
    loop_timers_run(&loop->core.timers, loop->now_us);
    loop_run_inbox(loop);
    calls_run(&loop->gather);
    calls_run(&loop->idle);
    loop_run_deferred(loop);
    log_flush();
    loop_count_stall(loop, due_us);
}

void loop_run(struct loop *loop)
{
    ASSERT(!loop->core.is_running);
    loop->core.thread = pthread_self();
    loop->core.is_running = true;
    while (!atomic_load(&loop->stopping))
        loop_turn(loop);
    // Calls posted before the stop still run: nothing else owns their arguments.
    loop_run_inbox(loop);
    calls_run(&loop->gather);
    calls_run(&loop->idle);
    loop_run_deferred(loop);
    log_flush();
    loop->core.is_running = false;
}

static int watch_new(const struct loop_io *wanted, struct loop_io **ret_watch)
{
    ASSERT(loop_is_mine(wanted->loop));
    ASSERT(wanted->fn && wanted->fd >= 0);
    struct loop_io *watch = malloc(sizeof *watch);
    if (!watch)
        return -ERROR_MEMORY;
    *watch = *wanted;
    watch->tag = TAG(loop_io);
    struct epoll_event event = {.events = watch->events, .data.ptr = watch};
    if (epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) < 0) {
        free(watch);
        return errno == ENOMEM ? -ERROR_MEMORY : -ERROR_UNAVAILABLE;
    }
    *ret_watch = watch;
    return 0;
}

int loop_io_new(struct loop *loop, int fd, uint32_t events, loop_ready_fn *fn, void *arg,
                struct loop_io **ret_watch)
{
    return watch_new(&(struct loop_io){.loop = loop,
                                       .fn = fn,
                                       .arg = arg,
                                       .epoll_fd = loop->epoll_fd,
                                       .fd = fd,
                                       .events = events},
                     ret_watch);
}

int loop_io_new_peer(struct loop *loop, int fd, uint32_t events, loop_ready_fn *fn, void *arg,
                     struct loop_io **ret_watch)
{
    return watch_new(&(struct loop_io){.loop = loop,
                                       .fn = fn,
                                       .arg = arg,
                                       .epoll_fd = loop->peers_fd,
                                       .fd = fd,
                                       .events = events},
                     ret_watch);
}

void loop_io_set(struct loop_io *watch, uint32_t events)
{
    ASSERT(watch->fn && loop_is_mine(watch->loop));
    if (watch->events == events)
        return;
    watch->events = events;
    struct epoll_event event = {.events = events, .data.ptr = watch};
    int r = epoll_ctl(watch->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event);
    ASSERT(r == 0);
}

void loop_io_free(struct loop_io *watch)
{
    if (!watch)
        return;
    ASSERT(watch->fn && loop_is_mine(watch->loop));
    // Fails harmlessly if the descriptor is closed already.
    (void)epoll_ctl(watch->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->fn = NULL;
    watch->next_dead = watch->loop->dead;
    watch->loop->dead = watch;
}

int loop_idle_add(struct loop *loop, loop_fn *fn, void *arg)
{
    ASSERT(loop_is_mine(loop));
    return calls_append(&loop->idle, fn, arg) ? 0 : -ERROR_MEMORY;
}

int loop_gather_add(struct loop *loop, loop_fn *fn, void *arg)
{
    ASSERT(loop_is_mine(loop));
    return calls_append(&loop->gather, fn, arg) ? 0 : -ERROR_MEMORY;
}

void loop_again(struct loop *loop)
{
    ASSERT(loop_is_mine(loop));
    loop->again = true;
}

void loop_defer(struct loop *loop, loop_fn *fn, void *arg)
{
    struct loop_calls *deferred = &loop->deferred;
    ASSERT(loop_is_mine(loop));
    if (deferred->count == deferred->capacity) {
        deferred->capacity = capacity_next(deferred);
        deferred->call =
            memory_must_resize(deferred->call, deferred->capacity, sizeof *deferred->call);
    }
    (void)calls_append(deferred, fn, arg);
}

int64_t loop_now_ms(const struct loop *loop)
{
    return loop->now_us / 1000;
}

int64_t loop_now_us(const struct loop *loop)
{
    return loop->now_us;
}
