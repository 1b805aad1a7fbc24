// SPDX-License-Identifier: Apache-2.0
// The barest fan-out there is: a thread that hears of each committed post and counts it in Redis,
// one INCR of its channel, pipelined a batch at a time.
#ifndef TIDINGS_FLOOR_COUNTER_H
#define TIDINGS_FLOOR_COUNTER_H

#include <stddef.h>

struct counter;

// Connects to Redis at 127.0.0.1 and starts the thread; dies on failure. Never NULL.
struct counter *counter_new(unsigned redis_port);

// Counts what has been sent, ends the thread and frees.
void counter_free(struct counter *counter);

// Tells of one post, for the next counter_send(). The thread borrows `channel` until
// counter_free().
void counter_add(struct counter *counter, const char *channel);

// Hands over what was added, once a round: the thread is woken once for all of it.
void counter_send(struct counter *counter);

#endif
