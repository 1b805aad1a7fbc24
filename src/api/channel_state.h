// SPDX-License-Identifier: Apache-2.0
// What each channels.info reads: the version of a channel's row, its head, and the viewer's read
// state. Calls that arrive while a statement is in flight share the next one, which is much cheaper
// per call (docs/decisions/2026-11-21-channels-info-batches.md). One per loop.
#pragma once

#include "base/actor.h"
#include "base/loop.h"
#include "store/group.h"
#include "store/store.h"

// The columns, preceded by `item`; `viewer` is an SQL expression. Each change of the channel's row,
// and each event of the channel, yields a new version.
#define CHANNEL_STATE_SELECT(item, viewer)                                                         \
    item ", c.xmin::text || '.' || coalesce(h.last_ts, c.last_ts), coalesce(h.seq, c.seq), "       \
         "c.type, m.active, m.epoch, m.ts, coalesce(h.posts, m.posts),"                            \
         " m.muted, m.ord, m.own, coalesce(h.ord, c.ord), c.deleted_ord,"                          \
         " CASE WHEN coalesce(h.ord, c.ord) - m.ord > coalesce(h.posts, m.posts) - m.own THEN"     \
         " (SELECT o.ts FROM messages o WHERE o.channel_id = c.id AND o.ts > m.ts AND o.counted"   \
         " AND NOT o.deleted AND o.user_id <> " viewer " AND (m.singles = 0 OR NOT"                \
         " is_read_singly(c.id, " viewer ", o.ts)) ORDER BY o.ts LIMIT 1) END,"                    \
         " CASE WHEN m.mention_ts > m.ts OR coalesce(h.mention_ts, c.mention_ts) > m.ts"           \
         " THEN mentions_after(c.id, " viewer ", m.ts, m.singles > 0) ELSE 0 END,"                 \
         " c.strategy_in_use, c.generation, m.number, m.single_version, m.singles,"                \
         " notify_level(m.notify)"
// Joins and conditions for a channel `c` of `workspace` that `viewer` may see. IS TRUE turns the
// workspace into a mere check, so that no index of workspaces is used.
#define CHANNEL_STATE_MEMBER(viewer)                                                               \
    " LEFT JOIN channel_members m ON m.channel_id = c.id AND m.user_id = " viewer                  \
    " LEFT JOIN LATERAL hot_state(c.id, c.is_hot, " viewer ") h ON true"
#define CHANNEL_STATE_SEEN(workspace)                                                              \
    "(c.workspace_id = " workspace ") IS TRUE AND (NOT c.is_private OR m.active)"

enum channel_state_column {
    STATE_ITEM,
    STATE_VERSION,
    STATE_SEQ,
    STATE_TYPE,
    STATE_ACTIVE,
    STATE_EPOCH,
    STATE_TS,
    STATE_POSTS,
    STATE_MUTED,
    STATE_ORD,
    STATE_OWN,
    STATE_HEAD_ORD,
    STATE_DELETED_ORD,
    STATE_OLDEST,
    STATE_MENTIONS,
    STATE_STRATEGY,
    STATE_GENERATION,
    STATE_NUMBER,
    STATE_SINGLE_VERSION,
    STATE_SINGLES,
    STATE_NOTIFY,
    STATE_COLUMNS
};

struct channel_states;

// r < 0: the statement failed. Otherwise the state is `row` of `result`; `row` < 0: no such
// channel, or hidden from the viewer.
typedef void channel_state_fn(void *arg, int r, const struct result *result, int row);

// One call. Owned by the caller, with everything it points to, until `fn` was called.
struct channel_state_call {
    struct group_item item; // must be first
    uint32_t tag;           // set by channel_state_read()
    const struct actor *viewer;
    const char *channel_id;
    channel_state_fn *fn;
    void *arg;
};

// At most `queue_max` calls wait.
NODISCARD int channel_states_new(struct loop *loop, struct store *store, int queue_max,
                                 struct channel_states **ret_states);
void channel_states_free(struct channel_states *states); // NULL is allowed

// Calls call->fn once, never inside this call. -ERROR_BUSY: too many calls wait; fn is not called.
NODISCARD int channel_state_read(struct channel_states *states, struct channel_state_call *call);
