// SPDX-License-Identifier: Apache-2.0
// New channels: which were told of, and those that may have been missed.
#pragma once

#include "base/buffer.h"
#include "events/event.h"
#include "store/store.h"

struct gateway;

enum { CREATED_KNOWN = 128 };

struct created {
    char ids[CREATED_KNOWN][EVENT_ID_SIZE]; // channels told of last, a ring
    unsigned next;
};

// The first part of a sweep: new channels. Also takes the next note.
void created_sweep(struct gateway *gateway);
// Appends the frame of a channel: of id, name, is_private, creator, created, after a first column.
void created_write(const struct result *result, int row, struct buffer *out);
// Whether a channel's creation has not been told yet, as far as is known. It counts as told then.
bool created_take(struct gateway *gateway, const char *channel_id);
