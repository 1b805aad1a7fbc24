// SPDX-License-Identifier: Apache-2.0
// One thread's event loop: epoll, timers, and an inbox for messages from other threads.
// Everything here is called on the loop's own thread, except loop_post() and loop_stop(), which any
// thread may call. A turn: wait → ready descriptors → due timers → inbox → gather callbacks (make
// one of what came) → idle callbacks (send) → deferred frees.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_io; // a watched descriptor
struct loop_timer;

typedef void loop_fn(void *arg);
// `events` are epoll's bits (EPOLLIN, EPOLLOUT, EPOLLHUP, …).
typedef void loop_ready_fn(void *arg, uint32_t events);

NODISCARD int loop_new(struct loop **ret_loop);
void loop_free(struct loop *loop); // after loop_run() returned; watches and timers must be gone

// Runs until loop_stop(). Call once.
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop); // any thread

// Calls `fn` on the loop's thread, in the order of posting, even if loop_stop() comes first. Any
// thread. `arg` must stay valid until then. -ERROR_MEMORY, -ERROR_BUSY (a million calls wait
// already).
NODISCARD int loop_post(struct loop *loop, loop_fn *fn, void *arg);

// Watches `fd` (not owned) for `events` (level-triggered). The watch is valid until
// loop_io_free().
NODISCARD int loop_io_new(struct loop *loop, int fd, uint32_t events, loop_ready_fn *fn, void *arg,
                          struct loop_io **ret_watch);
// The same, for one of the many who are connected: a turn takes some of those at a time, so that
// thousands at once (a network that breaks off) keep nobody waiting for Postgres' answers.
NODISCARD int loop_io_new_peer(struct loop *loop, int fd, uint32_t events, loop_ready_fn *fn,
                               void *arg, struct loop_io **ret_watch);
void loop_io_set(struct loop_io *watch, uint32_t events);
// Before the fd is closed. Safe inside callbacks; NULL does nothing.
void loop_io_free(struct loop_io *watch);

// Calls `fn` once, `delay_ms` from now. loop_timer_set() on a running or finished timer starts it
// anew; it is freed by loop_timer_free() only. Cost: O(log timers).
NODISCARD int loop_timer_new(struct loop *loop, loop_fn *fn, void *arg,
                             struct loop_timer **ret_timer);
void loop_timer_set(struct loop_timer *timer, int64_t delay_ms);
void loop_timer_clear(struct loop_timer *timer);
void loop_timer_free(struct loop_timer *timer); // safe inside callbacks; takes NULL

// Calls `fn` at the end of every turn (before waiting again): where sockets are flushed.
NODISCARD int loop_idle_add(struct loop *loop, loop_fn *fn, void *arg);

// The same, before all idle callbacks: where what came is made into batches. A batch is on its way
// to Postgres before a write to Redis wakes that, perhaps on this very core.
NODISCARD int loop_gather_add(struct loop *loop, loop_fn *fn, void *arg);

// Makes the loop take one more turn without waiting: for an idle callback that made work for
// another.
void loop_again(struct loop *loop);

// Calls `fn(arg)` at the very end of this turn: how an object frees itself from inside its own
// callback.
void loop_defer(struct loop *loop, loop_fn *fn, void *arg);

// The monotonic time at which this turn began.
int64_t loop_now_ms(const struct loop *loop);
int64_t loop_now_us(const struct loop *loop);
