// SPDX-License-Identifier: Apache-2.0
// A loop's access to Postgres: a few non-blocking, pipelined connections, called lanes, which
// reconnect by themselves. Call everything on the loop's thread, except where noted; nothing
// blocks. Callbacks run on the loop's thread, never from inside the call that registered them.
#pragma once

#include "base/loop.h"
#include "store/statement.h"

// Each lane is a connection for one kind of work, so that kinds do not delay each other. A lane
// runs its statements in order. Short reads are the exception: they have two connections, and use
// the second one while the first is busy. The lanes up to STORE_ASIDE write, and wait for locks
// only briefly (lock_wait_ms).
enum store_lane {
    STORE_POST,      // group commits of posts
    STORE_MARK,      // group commits of marks
    STORE_WRITE,     // other changes: store_change()
    STORE_MANY,      // changes to all of a user's channels in one statement: store_change_many()
    STORE_ASIDE,     // retries of changes that found a row locked
    STORE_READ,      // short reads, and writes that may be lost
    STORE_READ_TOO,  // second connection for short reads; chosen by store_call() for STORE_READ
    STORE_LIST,      // pages of lists, and of events that an event stream missed
    STORE_SYNC,      // long reads
    STORE_BULK,      // reads of many adjacent rows; the planner may use only merge joins
    STORE_BULK_BACK, // the same, for a second concurrent reader
    STORE_LANE_MAX
};

struct store;

// Whether libpq can parse the URL. Does not connect.
bool store_url_is_valid(const char *database_url);

struct store_options {
    const char *database_url;
    int64_t connect_timeout_ms;
    int64_t statement_timeout_ms; // also the client-side deadline for a reply, plus a second
    int64_t lock_wait_ms;         // for locked rows, on the lanes that write
    int queue_max;                // statements in flight per lane
    size_t queue_bytes;           // of their parameters; a lone statement may exceed it
};

// r: 0 with a result, or
//  -ERROR_UNAVAILABLE  no connection: not sent, without effect (but see `unknown`)
//  -ERROR_BUSY         queue full (not sent); lock or statement timeout, deadlock or lack of server
//                      resources: rolled back
//  -ERROR_REFUSED      one of our SQL functions raised TD001 (the request is not allowed): rolled
//                      back
//  -ERROR_INTERNAL     Postgres rejected the statement (logged): rolled back
//  -ERROR_MEMORY       the parameters did not fit: not sent
// `unknown`: the connection was lost after the statement was sent, so it may have been committed (r
// is -ERROR_UNAVAILABLE). `locked`: another transaction held a lock for too long (r is
// -ERROR_BUSY).
struct store_outcome {
    int r;
    bool unknown;
    bool locked;
    const struct result *result; // NULL unless r == 0
    bool *taken;                 // the store's; see store_take()
};
typedef void store_fn(void *arg, const struct store_outcome *outcome);

// Transfers ownership of an outcome's result to the caller. It outlives the callback, until
// result_free().
struct result *store_take(const struct store_outcome *outcome);

// Connects in the background. The strings in `options` must outlive the store.
NODISCARD int store_new(struct loop *loop, const struct store_options *options,
                        struct store **ret_store);
// Closes all connections. Call after loop_run() has returned. First answers pending calls with
// -ERROR_UNAVAILABLE.
void store_free(struct store *store);

// Runs `statement` in a transaction of its own (one Sync each). Takes over `params` (empty
// afterwards; may be NULL); their types must be the same each time. Calls `fn` exactly once, never
// from inside store_call(). Sends a turn's statements at its end.
void store_call(struct store *store, enum store_lane lane, const struct statement *statement,
                struct params *params, store_fn *fn, void *arg);

// Runs a change on STORE_WRITE, like store_call(). Changes with the same `key` (usually the id of
// the channel they change) run one at a time, in call order. A change that finds a row locked is
// retried; only changes with its key wait meanwhile. After the statement timeout it fails with
// -ERROR_BUSY.
void store_change(struct store *store, const char *key, const struct statement *statement,
                  struct params *params, store_fn *fn, void *arg);

// The same on STORE_MANY, which also runs the retries.
void store_change_many(struct store *store, const char *key, const struct statement *statement,
                       struct params *params, store_fn *fn, void *arg);

// Sends a lane's statements now instead of at the end of the turn: for statements that should not
// wait until this turn has finished its other work.
void store_flush(struct store *store, enum store_lane lane);

// Reads received data on a lane into memory without calling back. Lets Postgres send the next reply
// while a long one is being processed, although the kernel's buffer is full.
void store_pull(struct store *store, enum store_lane lane);

// Whether the lane is connected now. Any thread.
bool store_is_up(const struct store *store, enum store_lane lane);

// Postgres may assign a transaction id twice: after a crash or a failover. So clients get an id
// together with the *era* in which it was assigned. If a later era began with a lower id, the id
// alone is meaningless.
struct era {
    int64_t number;    // rises with each era; 0: unknown
    int64_t first_xid; // lowest id of anything written in this era
};

// The current era, according to the most recent connection.
struct era store_era(const struct store *store);

// `xid` was given to a client in era `number`. Whether everything written since then has an id of
// at least `xid`.
bool store_era_holds(const struct store *store, int64_t number, int64_t xid);

// Calls `fn` each time the lane has connected or reconnected.
void store_on_up(struct store *store, enum store_lane lane, loop_fn *fn, void *arg);
