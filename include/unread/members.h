// SPDX-License-Identifier: Apache-2.0
// Who is in a channel, in Redis: channel:members:{C}, a set, or sets of about 5,000 above 10,000
// members. Built from Postgres when it is missing, kept by the events of joins and leaves, extended
// for a day with each access, and compared with Postgres every day. Threads with a pipeline and a
// session.
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

// One set, as SMEMBERS answered it.
struct member_list {
    struct member_ids ids;
    bool complete;  // else it has to be built
    bool is_shard;  // a whole one
    int64_t shards; // of so many sets this is the root, 0: it is the list itself
    int r;
};
void member_list_done(struct member_list *list);
// A cache_fn with a struct member_list, which is empty before.
void member_list_take(void *list, int r, const struct cache_value *value);

// Adds the commands that read channel:members:{C} (shard -1) or one of its shards: one answer for
// member_list_take(), one to be ignored.
void members_read_add(struct pipeline *pipeline, const char *channel_id, int64_t shard);

// The same at once, after all that was added before. -ERROR_BUSY: a shard is not there, so the list
// is now missing as a whole.
NODISCARD int members_read_shard(struct pipeline *pipeline, const char *channel_id, int64_t shard,
                                 struct member_list *ret_list);

// All members. -ERROR_UNAVAILABLE, …
NODISCARD int members_read(struct pipeline *pipeline, struct session *session,
                           const char *channel_id, struct member_ids *ret_ids);

// Fills a list that is missing or not complete from Postgres.
NODISCARD int members_build(struct pipeline *pipeline, struct session *session,
                            const char *channel_id);

// Compares all lists that Redis has with Postgres and mends them. How many members were wrong.
NODISCARD int members_reconcile(struct pipeline *pipeline, struct session *session,
                                int64_t *ret_repaired);
