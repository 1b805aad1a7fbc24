// SPDX-License-Identifier: Apache-2.0
// Redis' list of a channel's members: channel:members:{C}, one set, or above 10,000 members several
// sets (shards) of about 5,000. Built from Postgres when it is missing, updated by joins and
// leaves, kept for a day after each access, and compared with Postgres every day. For threads that
// have a pipeline and a session.
#pragma once

#include "cache/pipeline.h"
#include "events/event.h"
#include "store/session.h"

enum { MEMBERS_TTL_S = 86400 };

// Ids of members, in any order. All-zero is empty.
struct member_ids {
    char (*ids)[EVENT_ID_SIZE]; // heap
    size_t count;
    size_t room;
};
void member_ids_done(struct member_ids *ids);

// One set, as read by members_read_add().
struct member_list {
    struct member_ids ids;
    bool complete;  // false: the list has to be built
    bool is_shard;  // this is a complete shard
    int64_t shards; // the list consists of so many shards; 0: it is this set
    int r;
};
void member_list_done(struct member_list *list);
// A cache_fn whose `arg` is an empty struct member_list.
void member_list_take(void *list, int r, const struct cache_value *value);

// Adds the commands that read channel:members:{C} (shard -1) or one of its shards. There are two
// answers: the first is for member_list_take(), the second to be ignored.
void members_read_add(struct pipeline *pipeline, const char *channel_id, int64_t shard);

// The same, run at once together with everything added before. -ERROR_BUSY: the shard is missing,
// so the whole list has been dropped.
NODISCARD int members_read_shard(struct pipeline *pipeline, const char *channel_id, int64_t shard,
                                 struct member_list *ret_list);

// All members. -ERROR_UNAVAILABLE, …
NODISCARD int members_read(struct pipeline *pipeline, struct session *session,
                           const char *channel_id, struct member_ids *ret_ids);

// Builds a list that is missing or incomplete, from Postgres.
NODISCARD int members_build(struct pipeline *pipeline, struct session *session,
                            const char *channel_id);

// Compares all lists in Redis with Postgres and corrects them. ret_repaired: how many members were
// wrong.
NODISCARD int members_reconcile(struct pipeline *pipeline, struct session *session,
                                int64_t *ret_repaired);
