// SPDX-License-Identifier: Apache-2.0
// Devices' turns to be told something, in Postgres (sql/19_pushes.sql, sql/20_push_turns.sql). Each
// call blocks; of one thread at a time.
#pragma once

#include "base/list.h"
#include "events/event.h"
#include "notify/sealed_push.h"
#include "store/session.h"

// A device whose turn it is, and the push that tells it.
struct device_turn {
    uint32_t tag;
    struct list link;     // of the one who has it
    struct list answered; // likewise, once there is an answer
    void *arg;            // likewise
    char *user_id;        // texts are the turn's
    char *app;
    char *device_id;
    char *channel_id; // "": of no channel
    char *kind;       // "message", "summary" (of what was put off), "silent"
    char app_id[NOTIFY_APP_ID_SIZE];
    int64_t lease;
    int64_t thread_ts; // 0: of no thread
    int64_t ts;
    int64_t happened_us; // 0: what it tells of has waited on purpose
    int64_t badge;
    int64_t told_badge;       // that the device shows; -1: not known
    int64_t hold_at_ms;       // when the lease is to be renewed
    struct notify_push *push; // until it is sent
    struct notify_answer answer;
    bool is_skipped; // there was nothing to send
};

struct device_turns_options {
    const struct secrets *secrets;
    int64_t app_parallel; // pushes of one app under way at once
    int64_t lease_ms;
    int64_t ttl_s;    // how long a push is tried
    int64_t pause_ms; // between two pushes of one conversation
};

void device_turn_free(struct device_turn *turn);

// Adds what events may have devices told; how much, or a negative error. `room` is for so many
// jobs. Moves the pointers in `events` about.
NODISCARD int device_turns_add(struct session *session, struct event **events, size_t count,
                               int64_t room);

// Takes at most `most` devices, and appends them to `ready`. `under_way` are those that the caller
// has. One whose secrets do not open has no push, and the answer instead. How many.
NODISCARD int device_turns_take(struct session *session, const struct list *under_way, int64_t most,
                                const struct device_turns_options *options, struct list *ready);

// Those under way whose time has come stay the caller's.
NODISCARD int device_turns_hold(struct session *session, struct list *under_way, int64_t now_ms,
                                const struct device_turns_options *options);

// Tells what became of `settled`.
NODISCARD int device_turns_settle(struct session *session, const struct list *settled,
                                  const struct device_turns_options *options);

// The workspaces with a device: sorted, each EVENT_ID_SIZE bytes; appended to `ids`.
NODISCARD int device_turns_workspaces(struct session *session, struct buffer *ids);

// Adds what came for a workspace while it was not known to have a device: for the devices of the
// last `within_s`.
NODISCARD int device_turns_met(struct session *session, const char *workspace_id, int64_t within_s);

struct device_turns_depth {
    int64_t waiting; // jobs
    int64_t oldest_s;
    int64_t dead;
};
NODISCARD int device_turns_depth(struct session *session, struct device_turns_depth *ret_depth);

// Deletes a piece of what is kept no longer. 1 when there may be more, else 0.
NODISCARD int device_turns_clean(struct session *session, int64_t dead_keep_s);
