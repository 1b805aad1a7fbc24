// SPDX-License-Identifier: Apache-2.0
// A lane of a store: a connection that reconnects by itself, and its pending calls.
//
//   store_call ─► queued ──lane_flush()──► sent ──Sync──► answered
//                    └────── no connection ──┴──────────► refused (at the end of the turn)
//
// A lane is DOWN (its timer runs until the next attempt), CONNECTING (a thread connects), GREETING
// (its timer limits the time) or UP (its timer watches the oldest sent call).
#pragma once

#include "base/list.h"
#include "store/store.h"

#include "postgres_internal.h"

struct lane_call {
    struct list link;
    const struct statement *statement;
    struct params params; // freed once sent
    size_t bytes;         // of the parameters
    store_fn *fn;
    void *arg;
    PGresult *result; // kept until the Sync, which commits
    int r;
    bool unknown;
    bool locked;
    bool preparing; // whether the next result is that of preparing the statement
};

typedef void lane_call_fn(struct store *store, struct lane_call *call);
struct lane;

struct lane_options {
    const char *name;
    struct store *store;
    struct loop *loop;
    const struct store_options *settings;
    const struct postgres_keywords *keywords;
    lane_call_fn *answer; // calls back at once
    lane_call_fn *refuse; // keeps the call until the end of the turn, then calls back
    // Creates a connection's first call. Its callback must end with lane_greeted() or
    // lane_reject().
    struct lane_call *(*greet)(struct store *store, const struct lane *lane);
};

// Creates a lane and starts to connect.
NODISCARD int lane_new(const struct lane_options *options, struct lane **ret_lane);
// Refuses all pending calls.
void lane_free(struct lane *lane);

// The connection's first call succeeded: the lane is up, unless it was lost meanwhile.
void lane_greeted(struct lane *lane);

// The connection is unusable, according to the reply to its first call. The lane reconnects later.
void lane_reject(struct lane *lane);

// Queues the call, or refuses it.
void lane_call(struct lane *lane, struct lane_call *call);

// Sends queued calls. Refuses them if the lane is down and no longer waits for its first
// connection.
void lane_flush(struct lane *lane);

// See store_pull(). lane_read_pulled() delivers the replies that lane_pull() read, at the end of
// the turn.
void lane_pull(struct lane *lane);
void lane_read_pulled(struct lane *lane);

// Calls no longer wait for the first connection.
void lane_end_patience(struct lane *lane);

bool lane_is_up(const struct lane *lane);
int lane_count(const struct lane *lane); // calls queued or sent
void lane_on_up(struct lane *lane, loop_fn *fn, void *arg);
