// SPDX-License-Identifier: Apache-2.0
// Strategies: how a channel keeps its members' unread state in Redis. One interface, one file per
// strategy. Postgres is authoritative for all of them. Everything in Redis records its
// `generation`, `seq` and cursor, and readers use only what matches the rows they have read from
// Postgres. So Redis can never make an answer wrong: a count is correct or unknown.
//
// If a strategy requires it, the fan-out *walks* the members: unread/member_walk.h. All functions
// only fill in calls or parse replies; they are stateless and may be used by any thread.
#pragma once

#include "cache/pipeline.h"
#include "unread/fcall.h"
#include "unread/view.h"

// Consecutive events of one channel and generation, in seq order.
struct run {
    struct event *const *events;
    size_t count;
};

struct strategy_ops {
    const char *name;
    const char *walk_function; // NULL: members are never walked
    size_t run_max;            // maximum events per walk

    // Whether a run changes members' state in Redis; whether it invalidates that state.
    bool (*walks)(const struct run *run);
    bool (*forgets)(const struct run *run);

    // For posts and deletes: appends the arguments that apply a run to a chunk of members
    // (`authors` is 0). In the last chunk, the keys are those of the authors of the run's counted
    // posts instead, in event order, starting at key number `authors`: authors' own posts do not
    // count for them.
    void (*on_events)(struct fcall *call, const struct run *run, int authors);

    // For a mark: `view` is the state after it, `tss` the messages it marked individually. False:
    // nothing to send to Redis.
    bool (*on_read)(struct fcall *call, const struct unread_view *view, const int64_t *tss,
                    int count);

    // Fills in the call that reads a count from Redis; strategy_count_take() parses the reply: the
    // count (with zset at most its cap + 1) or STRATEGY_UNKNOWN. NULL: Redis is not read.
    void (*count)(struct fcall *call, const struct unread_view *view);

    // Fills in the call that writes `view`, just read from Postgres, to Redis. For zset also the
    // newest unread messages of the same snapshot, at most its cap + 1. False: there is nothing to
    // write.
    bool (*rebuild)(struct fcall *call, const struct unread_view *view, const int64_t *tss,
                    const int64_t *seqs, int count);
    bool rebuilds_messages; // rebuild() needs these messages
};

enum { STRATEGY_UNKNOWN = -1 };

// NULL: no strategy has this number.
const struct strategy_ops *strategy_find(int64_t strategy);

int64_t strategy_count_take(int r, const struct cache_value *value);

// Reads the counts of `count` members at once. On a worker's or a tool's thread.
// -ERROR_UNAVAILABLE, …
NODISCARD int strategy_count_many(struct pipeline *pipeline, const struct unread_view *views,
                                  size_t count, int64_t *ret_counts);

// Begins a call with the common part of all calls for one member: the keys of the walk, the member
// list and the member's state, followed by generation, seq, user and number as arguments.
void strategy_call_begin(struct fcall *call, const char *function, const struct unread_view *view);

extern const struct strategy_ops strategy_sequence, strategy_zset, strategy_counter,
    strategy_bitmap;

// The count under `sequence`, from the reply to HMGET channel-latest:{C} seq deleted_floor deleted,
// for a member without individually read messages. STRATEGY_UNKNOWN: the reply has another seq than
// the view, or does not go back to its cursor.
int64_t strategy_sequence_count(const struct unread_view *view, int r,
                                const struct cache_value *value);
