// SPDX-License-Identifier: Apache-2.0
// Devices' turns in Postgres (sql/19_pushes.sql to sql/22_push_outcomes.sql). All calls block; by
// one thread at a time.
#pragma once

#include "base/list.h"
#include "events/event.h"
#include "notify/sealed_push.h"
#include "store/session.h"

// A device whose turn it is, and its push.
struct device_turn {
    uint32_t tag;
    struct list link;     // in the holder's lists
    struct list answered; // in the holder's list of answered turns
    void *arg;            // the holder's
    char *user_id;        // all strings are owned by the turn
    char *app;
    char *device_id;
    char *channel_id; // "": no channel
    // "message", "summary" (of deferred messages), "replacement" or "withdrawal" (of what is
    // shown), "silent"
    char *kind;
    char app_id[NOTIFY_APP_ID_SIZE];
    int64_t lease;
    int64_t thread_ts; // 0: no thread
    int64_t ts;
    int64_t happened_us; // 0: the push was deferred on purpose
    int64_t badge;
    int64_t shown_badge;      // the badge the device shows now; -1: unknown
    int64_t held_s;           // the user is active for so long; 0: not, or the push does not ring
    int64_t hold_at_ms;       // when the lease must be renewed
    struct notify_push *push; // NULL once sent
    struct notify_answer answer;
    bool is_skipped; // there was nothing to send
};

struct device_turns_options {
    const struct secrets *secrets;
    int64_t app_parallel; // maximum pushes in flight per app
    int64_t lease_ms;
    int64_t ttl_s;    // how long a push is retried
    int64_t pause_ms; // minimum interval between pushes of a conversation
};

void device_turn_free(struct device_turn *turn);

// Adds push jobs for `count` events. Returns their number, or a negative error. `room`: maximum
// number of new jobs. Reorders `events`.
NODISCARD int device_turns_add(struct session *session, struct event **events, size_t count,
                               int64_t room);

// Takes at most `most` devices and appends them to `ready`. `under_way`: the caller's turns. A turn
// whose push cannot be built has an answer instead. Returns the number taken.
NODISCARD int device_turns_take(struct session *session, const struct list *under_way, int64_t most,
                                const struct device_turns_options *options, struct list *ready);

// Renews the leases of turns in `under_way` that are due.
NODISCARD int device_turns_hold(struct session *session, struct list *under_way, int64_t now_ms,
                                const struct device_turns_options *options);

// Stores the outcomes of `settled`.
NODISCARD int device_turns_settle(struct session *session, const struct list *settled,
                                  const struct device_turns_options *options);

// Appends the ids of all workspaces with a device to `ids`: sorted, EVENT_ID_SIZE bytes each.
NODISCARD int device_turns_workspaces(struct session *session, struct buffer *ids);

// Adds the jobs a workspace missed before its devices were noticed: for devices registered in the
// last `within_s`.
NODISCARD int device_turns_met(struct session *session, const char *workspace_id, int64_t within_s);

struct device_turns_depth {
    int64_t waiting; // jobs
    int64_t oldest_s;
    int64_t dead;
};
NODISCARD int device_turns_depth(struct session *session, struct device_turns_depth *ret_depth);

// Deletes one batch of expired rows. 1: there may be more; 0: done.
NODISCARD int device_turns_clean(struct session *session, int64_t dead_keep_s);
