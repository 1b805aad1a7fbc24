// SPDX-License-Identifier: Apache-2.0
// Frames for new channels, each sent once; catches up on creations that were missed.
#pragma once

#include "base/buffer.h"
#include "events/event.h"
#include "store/store.h"

struct gateway;
struct user;

NODISCARD int created_channels_new(struct gateway *gateway);
void created_channels_free(struct gateway *gateway); // may be called without created_channels_new()
// Sends the channels created in or after transaction `since_xid`.
void created_channels_sweep(struct gateway *gateway, int64_t since_xid);
// Where the next sweep must start; 0: the last one failed, or is in progress.
int64_t created_channels_swept_xid(const struct gateway *gateway);
// Appends the channel's frame. Columns from the second: id, name, is_private, creator, created.
void created_channel_write(const struct result *result, int row, struct buffer *out);
// Sends EVENT_CREATED: of a private channel to its creator, of others to the workspace. Remembers
// the last ones, so that a client does not receive one twice.
void created_channels_send_user(struct gateway *gateway, struct user *user,
                                const struct event *event);
void created_channels_send_workspace(struct gateway *gateway, const char *workspace_id,
                                     const struct event *event);
