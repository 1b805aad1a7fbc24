// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/id.h"
#include "store/aside.h"
#include "unread/marker.h"

// While Postgres runs one batch, another is on its way to it. In which order marks come is all the
// same. Batches of one mark that found its row locked are under way besides.
enum { BATCHES_IN_WORK = 2, BATCHES_ASIDE = 4, BATCHES_MAX = BATCHES_IN_WORK + BATCHES_ASIDE };

// A batch in work; free for the next one while its count is 0.
struct mark_batch {
    uint32_t tag;
    struct marker *marker;
    char outbox_id[OUTBOX_ID_SIZE];
    struct mark **marks;
    int count;
    char aside_key[ASIDE_KEY_SIZE]; // "": the batch is one of the group's
};

struct marker {
    uint32_t tag;
    struct store *store;
    struct cache *cache;
    struct group *group;
    struct aside *aside;
    marker_on_settled_fn *on_settled;
    void *arg;
    int singles_max;
    char name[ID_SIZE];
    uint64_t batch_number;
    int queue_max;
    struct mark_batch batches[BATCHES_MAX];
};

// A committed mark that changed something, on its way to Redis and to its author.
struct settled {
    struct mark *mark;
    struct unread_view view;
};

// One outbox row while its marks are brought to Redis.
struct settling {
    uint32_t tag;
    struct marker *marker;
    char outbox_id[OUTBOX_ID_SIZE];
    int64_t at_us; // when it was answered
    int pending;   // calls of Redis
    bool failed;
    int count;
    int room;
    struct settled marks[];
};

// The columns of the answer to a mark.
enum mark_column { COLUMN_ITEM, COLUMN_ERROR, COLUMN_CHANGED, COLUMN_VIEW };

// For the marks of so many rows. NULL: no memory.
struct settling *settling_new(struct marker *marker, const char *outbox_id, int rows);

// Takes the answer to a mark. One that failed or changed nothing is answered at once, the others
// once settling_send() has brought them to Redis.
void settling_add(struct settling *settling, struct mark *mark, const struct result *result,
                  int row);

// Brings what changed to Redis, in one call; frees the settling in the end.
void settling_send(struct settling *settling);
