// SPDX-License-Identifier: Apache-2.0
// The list of a channel's members in Redis: channel:members:{C}, a single set or, above 10,000
// members, several sets (shards) of about 5,000. Built from Postgres if missing, updated by joins
// and leaves, kept for a day after each access, and reconciled with Postgres daily. For threads
// with a pipeline and a session.
#pragma once

#include "base/check.h"
#include "cache/pipeline.h"
#include "events/event.h"
#include "store/session.h"

enum { MEMBERS_TTL_S = 86400 };

// Ids of members, unordered. All-zero is empty.
struct member_ids {
    char (*ids)[EVENT_ID_SIZE]; // on the heap
    size_t count;
    size_t room;
};
void member_ids_done(struct member_ids *ids);

// One set, as read by members_read_add().
struct member_list {
    uint32_t tag;
    struct member_ids ids;
    bool complete;  // false: the list must be built
    bool is_shard;  // a complete shard
    int64_t shards; // number of shards of the list; 0: this set is the whole list
    int r;
};
// An empty list.
#define MEMBER_LIST ((struct member_list){.tag = TAG(member_list)})
void member_list_done(struct member_list *list); // empties it
// A cache_fn whose `arg` is an empty struct member_list.
void member_list_take(void *list, int r, const struct cache_value *value);

// Adds the commands that read channel:members:{C} (shard -1) or one of its shards. They get two
// replies: pass the first to member_list_take(), ignore the second.
void members_read_add(struct pipeline *pipeline, const char *channel_id, int64_t shard);

// Reads a set at once, after running everything added before. -ERROR_BUSY: the shard was missing,
// so the whole list has been dropped.
NODISCARD int members_read_shard(struct pipeline *pipeline, const char *channel_id, int64_t shard,
                                 struct member_list *ret_list);

// Reads all members. -ERROR_UNAVAILABLE, …
NODISCARD int members_read(struct pipeline *pipeline, struct session *session,
                           const char *channel_id, struct member_ids *ret_ids);

// Builds a missing or incomplete list from Postgres.
NODISCARD int members_build(struct pipeline *pipeline, struct session *session,
                            const char *channel_id);

// Compares all lists in Redis with Postgres and corrects them. ret_repaired: number of wrong
// members.
NODISCARD int members_reconcile(struct pipeline *pipeline, struct session *session,
                                int64_t *ret_repaired);
