// SPDX-License-Identifier: Apache-2.0
// A single-threaded event loop: epoll, timers, and an inbox for calls from other threads. Call
// everything on the loop's own thread, except loop_post() and loop_stop(), which any thread may
// call. Order of a turn: wait, ready descriptors, due timers, inbox, gather callbacks (form batches
// of what arrived), idle callbacks (send), deferred frees.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_io; // a watched descriptor
struct loop_timer;

typedef void loop_fn(void *arg);
// `events` are epoll bits (EPOLLIN, EPOLLOUT, EPOLLHUP, …).
typedef void loop_ready_fn(void *arg, uint32_t events);

NODISCARD int loop_new(struct loop **ret_loop);
void loop_free(struct loop *loop); // after loop_run() returned; free watches and timers first

// Runs until loop_stop() is called. Call once.
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop); // any thread

// Queues `fn` for the loop's thread. Calls run in posting order, even those posted before
// loop_stop(). Any thread. `arg` must stay valid until the call. -ERROR_MEMORY; -ERROR_BUSY: a
// million calls are queued.
NODISCARD int loop_post(struct loop *loop, loop_fn *fn, void *arg);

// Watches `fd` (not owned) for `events`, level-triggered. Valid until loop_io_free().
NODISCARD int loop_io_new(struct loop *loop, int fd, uint32_t events, loop_ready_fn *fn, void *arg,
                          struct loop_io **ret_watch);
// The same for a peer's connection. Each turn serves a limited number of peers, so that thousands
// of simultaneous events (after a network failure, say) do not delay replies from Postgres.
NODISCARD int loop_io_new_peer(struct loop *loop, int fd, uint32_t events, loop_ready_fn *fn,
                               void *arg, struct loop_io **ret_watch);
void loop_io_set(struct loop_io *watch, uint32_t events);
// Call before closing the fd. Safe inside callbacks. Accepts NULL.
void loop_io_free(struct loop_io *watch);

// Creates a one-shot timer that calls `fn` `delay_ms` from now. loop_timer_set() restarts it,
// running or expired. Only loop_timer_free() frees it. Cost: O(log timers).
NODISCARD int loop_timer_new(struct loop *loop, loop_fn *fn, void *arg,
                             struct loop_timer **ret_timer);
void loop_timer_set(struct loop_timer *timer, int64_t delay_ms);
void loop_timer_clear(struct loop_timer *timer);
void loop_timer_free(struct loop_timer *timer); // safe inside callbacks; accepts NULL

// Calls `fn` at the end of every turn, before the next wait. Sockets are flushed here.
NODISCARD int loop_idle_add(struct loop *loop, loop_fn *fn, void *arg);

// The same, before all idle callbacks. Batches are formed here, so that a batch is on its way to
// Postgres before a write to Redis wakes Redis, possibly on the same core.
NODISCARD int loop_gather_add(struct loop *loop, loop_fn *fn, void *arg);

// Makes the loop take another turn without waiting. For an idle callback that creates work for
// another.
void loop_again(struct loop *loop);

// Calls `fn(arg)` at the very end of this turn. Lets an object free itself inside its own callback.
void loop_defer(struct loop *loop, loop_fn *fn, void *arg);

// The monotonic time at the start of this turn.
int64_t loop_now_ms(const struct loop *loop);
int64_t loop_now_us(const struct loop *loop);
