// SPDX-License-Identifier: Apache-2.0
// The marker's structs, shared by marker.c and marker_settling.c.
#pragma once

#include "base/id.h"
#include "store/batcher.h"
#include "unread/marker.h"

struct marker {
    uint32_t tag;
    struct store *store;
    struct cache *cache;
    struct batcher *batcher;
    struct marker_options options;
    char name[ID_SIZE];
    uint64_t batch_number;
    char (*outbox_ids)[OUTBOX_ID_SIZE]; // one per batch of the batcher
};

// A committed mark with an effect, which Redis and the caller have yet to receive.
struct settled {
    struct mark *mark;
    struct unread_view view;
};

// One outbox row whose marks are being sent to Redis.
struct settling {
    uint32_t tag;
    struct marker *marker;
    char outbox_id[OUTBOX_ID_SIZE];
    int64_t at_us; // time of Postgres' reply
    int pending;   // Redis calls in flight
    bool failed;
    int count;
    int room;
    struct settled marks[];
};

// The columns of the reply to a mark.
enum mark_column { COLUMN_ITEM, COLUMN_ERROR, COLUMN_CHANGED, COLUMN_VIEW };

// Creates a settling for `rows` marks. NULL: out of memory.
struct settling *settling_new(struct marker *marker, const char *outbox_id, int rows);

// Adds a mark and its row of the reply. A mark that failed or changed nothing is answered at once,
// the others after settling_send() has sent them to Redis.
void settling_add(struct settling *settling, struct mark *mark, const struct result *result,
                  int row);

// Sends the changes to Redis in one call. The settling frees itself when done.
void settling_send(struct settling *settling);
