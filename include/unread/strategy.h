// SPDX-License-Identifier: Apache-2.0
// How a channel keeps its members' unread state in Redis: one interface, and one file for each
// strategy. Postgres is the truth for all of them. Everything in Redis says of which `generation`,
// `seq` and cursor it is. A reader believes only what matches the rows that it has read from
// Postgres, so nothing in Redis can make an answer wrong: it is right, or it is unknown.
//
// If a strategy needs it, the fan-out *walks* over the members: unread/walk.h. All functions only
// fill in calls or read answers; they hold no state and may be used by any thread.
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
    size_t run_max;            // most events of one walk

    // Whether a run changes what Redis keeps for members; whether it makes that unknown.
    bool (*walks)(const struct run *run);
    bool (*forgets)(const struct run *run);

    // For posts and deletes: appends the arguments that apply a run to a chunk of members
    // (`authors` is 0). In the last chunk the keys are instead those of the authors of the run's
    // counted posts, in the order of events, the first of them being key number `authors`: their
    // own posts do not count for them.
    void (*on_events)(struct fcall *call, const struct run *run, int authors);

    // For a mark: `view` is the state after it, `tss` the messages that it marked read one by one.
    // False: Redis need not be told.
    bool (*on_read)(struct fcall *call, const struct unread_view *view, const int64_t *tss,
                    int count);

    // Fills in the call that asks Redis for a count. strategy_count_take() reads its answer:
    // STRATEGY_UNKNOWN or the count (of zset at most its cap + 1). NULL: Redis is not asked.
    void (*count)(struct fcall *call, const struct unread_view *view);

    // Fills in the call that writes `view`, just read from Postgres, to Redis; for zset also the
    // newest unread messages, at most its cap + 1, of the same snapshot. False: there is nothing to
    // write.
    bool (*rebuild)(struct fcall *call, const struct unread_view *view, const int64_t *tss,
                    const int64_t *seqs, int count);
    bool rebuilds_messages; // rebuild() needs these messages
};

enum { STRATEGY_UNKNOWN = -1 };

// NULL for a number that is no strategy.
const struct strategy_ops *strategy_find(int64_t strategy);

int64_t strategy_count_take(int r, const struct cache_value *value);

// Asks for `count` members at once: fills in ret_counts. A worker's or a tool's thread.
// -ERROR_UNAVAILABLE, …
NODISCARD int strategy_count_many(struct pipeline *pipeline, const struct unread_view *views,
                                  size_t count, int64_t *ret_counts);

// Begins a call with what all calls for one member have in common: the keys of the walk, the
// members list and the member's state; then generation, seq, user and number as arguments.
void strategy_call_begin(struct fcall *call, const char *function, const struct unread_view *view);

extern const struct strategy_ops strategy_sequence, strategy_zset, strategy_counter,
    strategy_bitmap;

// The count under `sequence` by the answer to HMGET channel-latest:{C} seq deleted_floor deleted,
// for a member who read nothing one by one. STRATEGY_UNKNOWN: the answer is of another seq than the
// view, or does not go back to its cursor.
int64_t strategy_sequence_count(const struct unread_view *view, int r,
                                const struct cache_value *value);
