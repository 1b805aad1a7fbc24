// SPDX-License-Identifier: Apache-2.0
// Postgres as a loop sees it: a few non-blocking, pipelined connections, one per lane, that come
// back by themselves. Everything is called on the loop's thread and never blocks; callbacks run on
// the loop's thread, never before the call that registered them returned.
#pragma once

#include "base/loop.h"
#include "store/statement.h"

// Lanes keep kinds of work from waiting for one another; statements of one lane run in the order
// given, but for short reads: each takes the less busy of two connections.
enum store_lane {
    STORE_POST,      // group commits of posts
    STORE_MARK,      // group commits of marks
    STORE_WRITE,     // other changes
    STORE_READ,      // short reads, and notes that may be lost
    STORE_READ_TOO,  // their other connection; store_call() chooses, unless this one is named
    STORE_SYNC,      // long reads
    STORE_BULK,      // reads of many rows that lie side by side: joins are by merging
    STORE_BULK_BACK, // the same, for a second reader beside the first
    STORE_LANE_MAX
};

struct store;

// Whether libpq understands the URL; nothing is connected to.
bool store_url_is_valid(const char *database_url);

struct store_options {
    const char *database_url;
    int64_t connect_timeout_ms;
    int64_t statement_timeout_ms; // also the client's own deadline for an answer, plus a second
    int queue_max;                // statements in flight per lane
};

// r: 0 with a result, or
//  -ERROR_UNAVAILABLE  no connection; the statement was not sent (nothing happened)
//  -ERROR_BUSY         queue full, lock or statement timeout, too many retries: it was undone
//  -ERROR_REFUSED      a function of ours raised TD001: what was asked for is not allowed as a
//  whole; it was undone -ERROR_INTERNAL     Postgres refused the statement (logged): it was undone
//  -ERROR_MEMORY       the parameters did not fit: not sent
// `unknown` is true when the connection broke after the statement was sent, so that it may have
// been committed (r is then -ERROR_UNAVAILABLE).
struct store_outcome {
    int r;
    bool unknown;
    const struct result *result; // NULL unless r == 0
};
typedef void store_fn(void *arg, const struct store_outcome *outcome);

// Connects in the background. The options' strings must outlive the store.
NODISCARD int store_new(struct loop *loop, const struct store_options *options,
                        struct store **ret_store);
// Closes all, after loop_run() returned; calls still waiting are answered with -ERROR_UNAVAILABLE
// first.
void store_free(struct store *store);

// Runs `statement` in a transaction of its own (one Sync each). Takes over `params` (empty
// afterwards; may be NULL). Always answers through `fn`, exactly once, never from inside
// store_call(); statements given in one turn are sent at its end. A statement must always come with
// parameters of the same types.
void store_call(struct store *store, enum store_lane lane, const struct statement *statement,
                struct params *params, store_fn *fn, void *arg);

// Sends what was called on a lane now, not at the end of the turn: for what others wait for while
// this turn does more.
void store_flush(struct store *store, enum store_lane lane);

// Takes over what has come on a lane, without handing it out: in the middle of a long answer's
// reading, so that Postgres may go on with the next, which the kernel has no room for.
void store_pull(struct store *store, enum store_lane lane);

// Whether the lane has a live connection now.
bool store_is_up(const struct store *store, enum store_lane lane);

// Transaction ids may be given again after Postgres crashed, or after another server took over: an
// id is told together with the era in which it was given, and says nothing by itself in a later one
// that began below it.
struct era {
    int64_t number;    // rises; 0: not known
    int64_t first_xid; // of what was written in it
};

// The one that the database is in, as of the connection that came up last.
struct era store_era(const struct store *store);

// Whether everything that was written after `xid` was told, in the era `number`, has that id or a
// higher one.
bool store_era_holds(const struct store *store, int64_t number, int64_t xid);

// Calls fn whenever a lane's connection has come (back) up.
void store_on_up(struct store *store, enum store_lane lane, loop_fn *fn, void *arg);
