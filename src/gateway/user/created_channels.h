// SPDX-License-Identifier: Apache-2.0
// New channels: which were told of, and those that may have been missed.
#pragma once

#include "base/buffer.h"
#include "events/event.h"
#include "store/store.h"

struct gateway;
struct user;

NODISCARD int created_channels_new(struct gateway *gateway);
void created_channels_free(struct gateway *gateway); // does nothing if there is none
// Tells of those made in or after the transaction `since_xid`.
void created_channels_sweep(struct gateway *gateway, int64_t since_xid);
// The transaction that the next sweep has to begin with; 0: the last one was not answered, or
// failed.
int64_t created_channels_swept_xid(const struct gateway *gateway);
// Appends the frame of a channel: of id, name, is_private, creator, created, after a first column.
void created_channel_write(const struct result *result, int row, struct buffer *out);
// The event EVENT_CREATED of a private channel goes to its creator, others to their workspace; each
// once, as far as is known.
void created_channels_send_user(struct gateway *gateway, struct user *user,
                                const struct event *event);
void created_channels_send_workspace(struct gateway *gateway, const char *workspace_id,
                                     const struct event *event);
