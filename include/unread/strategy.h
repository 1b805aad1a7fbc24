// SPDX-License-Identifier: Apache-2.0
// How a channel keeps in Redis what its members have unread: one interface, one file a strategy.
// Postgres is the truth of all of them. Whatever is in Redis says of which `generation` and up to
// which `seq` of the channel it is, and of which cursor; a reader believes just what fits the row
// that it has read from Postgres, so nothing there can make an answer wrong: it is right, or it is
// unknown.
//
// The fan-out *walks* the members where a strategy needs that: unread/walk.h. All functions only
// fill in calls or read answers; they hold no state and may be used by any thread.
#pragma once

#include "cache/pipeline.h"
#include "unread/call.h"
#include "unread/view.h"

// Events of one channel and generation, in seq order, without a hole.
struct run {
    struct event *const *events;
    size_t count;
};

struct strategy_ops {
    const char *name;
    const char *walk_function; // NULL: members are never walked
    size_t run_max;            // events of one walk

    // Whether a run changes what Redis keeps for members, and whether it makes that unknown.
    bool (*walks)(const struct run *run);
    bool (*forgets)(const struct run *run);

    // on_post and on_delete: appends the arguments that bring a run to a chunk of members
    // (`authors` 0). In the last chunk the keys are those of the authors of the run's counted posts
    // instead, in the order of events, the first being key `authors`: their own posts do not count
    // for them.
    void (*on_events)(struct call *call, const struct run *run, int authors);

    // After a mark: view is the state after it, `tss` what was read one by one with it. False when
    // there is nothing to tell Redis.
    bool (*on_read)(struct call *call, const struct unread_view *view, const int64_t *tss,
                    int count);

    // What Redis says is unread; `count` fills in the call, strategy_count_take() reads its
    // answer: STRATEGY_UNKNOWN, or the number (more than the cap of zset: the cap + 1). NULL: Redis
    // is not asked.
    void (*count)(struct call *call, const struct unread_view *view);

    // Makes Redis know `view`, just read from Postgres, and for zset the newest unread messages, at
    // most the cap + 1, of the same snapshot. False: this state is not kept.
    bool (*rebuild)(struct call *call, const struct unread_view *view, const int64_t *tss,
                    const int64_t *seqs, int count);
    bool rebuilds_messages; // rebuild() wants them
};

enum { STRATEGY_UNKNOWN = -1 };

// NULL for a number that is no strategy.
const struct strategy_ops *strategy_find(int64_t strategy);

int64_t strategy_count_take(int r, const struct cache_value *value);

// Asks for `count` members at once: fills in ret_counts. A worker's or a tool's thread.
// -ERROR_UNAVAILABLE, …
NODISCARD int strategy_count_many(struct pipeline *pipeline, const struct unread_view *views,
                                  size_t count, int64_t *ret_counts);

// Begins a call with the keys and arguments that all calls for one member begin with: walk, members
// list, what is kept; gen seq user number.
void strategy_call_begin(struct call *call, const char *function, const struct unread_view *view);

extern const struct strategy_ops strategy_sequence, strategy_zset, strategy_counter,
    strategy_bitmap;

// The count of sequence by HMGET channel-latest:{C} seq deleted_floor deleted, where nothing was
// read one by one. STRATEGY_UNKNOWN: that is not of the view's seq, or does not go back to its
// cursor.
int64_t sequence_count_take(const struct unread_view *view, int r, const struct cache_value *value);
