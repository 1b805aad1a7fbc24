// SPDX-License-Identifier: Apache-2.0
// Postgres as a loop sees it: a few non-blocking, pipelined connections, one per lane, that come
// back by themselves. Everything is called on the loop's thread and never blocks; callbacks run on
// the loop's thread, never before the call that registered them returned.
#pragma once

#include "base/loop.h"
#include "store/statement.h"

// A lane is a connection for one kind of work, so that kinds of work do not wait for each other.
// The statements of a lane run in the order given, except short reads, which have two connections:
// those that one of them is too busy for take the other. Those that write come first, up to
// STORE_ASIDE: they wait for a lock for a moment only.
enum store_lane {
    STORE_POST,      // group commits of posts
    STORE_MARK,      // group commits of marks
    STORE_WRITE,     // other changes: store_change()
    STORE_MANY,      // what is about all channels of a user in one statement: store_change_many()
    STORE_ASIDE,     // what found a row locked is tried again here
    STORE_READ,      // short reads, and notes that may be lost
    STORE_READ_TOO,  // the second connection for these: store_call() chooses for STORE_READ
    STORE_LIST,      // pages: of lists, and of what an event stream missed
    STORE_SYNC,      // long reads
    STORE_BULK,      // reads of many adjacent rows; the planner may only use merge joins
    STORE_BULK_BACK, // the same, for a second reader at the same time
    STORE_LANE_MAX
};

struct store;

// Whether libpq understands the URL. Does not connect.
bool store_url_is_valid(const char *database_url);

struct store_options {
    const char *database_url;
    int64_t connect_timeout_ms;
    int64_t statement_timeout_ms; // also the client's own deadline for an answer, plus a second
    int64_t lock_wait_ms;         // for a locked row, on the lanes that change something
    int queue_max;                // statements in flight per lane
    size_t queue_bytes;           // of their parameters; a statement that goes alone may have more
};

// r: 0 with a result, or
//  -ERROR_UNAVAILABLE  no connection; the statement was not sent (nothing happened)
//  -ERROR_BUSY         queue full, lock or statement timeout, too many retries: it was undone
//  -ERROR_REFUSED      a function of the migrations raised TD001, which means that what was asked
//                      for is not allowed: it was undone
//  -ERROR_INTERNAL     Postgres refused the statement (logged): it was undone
//  -ERROR_MEMORY       the parameters did not fit: not sent
// `unknown` is true when the connection broke after the statement was sent, so that it may have
// been committed (r is then -ERROR_UNAVAILABLE). `locked` is true when a lock was held by somebody
// else for too long (r is then -ERROR_BUSY).
struct store_outcome {
    int r;
    bool unknown;
    bool locked;
    const struct result *result; // NULL unless r == 0
    bool *taken;                 // of the store: see store_take()
};
typedef void store_fn(void *arg, const struct store_outcome *outcome);

// Makes the result of an outcome the caller's own: it outlives the callback, until result_free().
struct result *store_take(const struct store_outcome *outcome);

// Connects in the background. The options' strings must outlive the store.
NODISCARD int store_new(struct loop *loop, const struct store_options *options,
                        struct store **ret_store);
// Closes all connections, after loop_run() returned. Calls still waiting are answered with
// -ERROR_UNAVAILABLE first.
void store_free(struct store *store);

// Runs `statement` in a transaction of its own (one Sync each). Takes over `params` (empty
// afterwards; may be NULL), which must have the same types each time. Always answers through `fn`,
// exactly once, never from inside store_call(). Statements of one turn are sent at its end.
void store_call(struct store *store, enum store_lane lane, const struct statement *statement,
                struct params *params, store_fn *fn, void *arg);

// Runs a change on STORE_WRITE, as store_call() does. Of the changes with one `key` (the id of what
// they change, the channel's as a rule), one is on its way at a time, in the order given. One that
// finds a row locked is tried again, while those with its key wait and no others do; after the
// statement timeout it is answered -ERROR_BUSY.
void store_change(struct store *store, const char *key, const struct statement *statement,
                  struct params *params, store_fn *fn, void *arg);

// The same on STORE_MANY, where it is tried again, too.
void store_change_many(struct store *store, const char *key, const struct statement *statement,
                       struct params *params, store_fn *fn, void *arg);

// Sends a lane's statements now instead of at the end of the turn: when somebody waits for them and
// this turn still has more to do.
void store_flush(struct store *store, enum store_lane lane);

// Reads what has arrived on a lane into memory, without calling back: while a long answer is being
// processed, so that Postgres can go on with the next one, which the kernel has no room for.
void store_pull(struct store *store, enum store_lane lane);

// Whether the lane has a live connection now. Any thread.
bool store_is_up(const struct store *store, enum store_lane lane);

// Postgres may give a transaction id twice: after a crash, or when another server has taken over.
// So clients get an id together with the *era* in which it was given. In a later era that began
// with a lower id, the id by itself means nothing.
struct era {
    int64_t number;    // rises with each era; 0: not known
    int64_t first_xid; // lowest id of anything written in it
};

// The current era, as of the connection that came up last.
struct era store_era(const struct store *store);

// `xid` was given to a client in the era `number`. Whether everything written since then has that
// id or a higher one.
bool store_era_holds(const struct store *store, int64_t number, int64_t xid);

// Calls fn whenever a lane's connection has come (back) up.
void store_on_up(struct store *store, enum store_lane lane, loop_fn *fn, void *arg);
