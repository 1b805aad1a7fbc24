// SPDX-License-Identifier: Apache-2.0
// Frames that are not stored (chat/unstored_frame.h).
#pragma once

#include <stddef.h>
#include <stdint.h>

struct connection;
struct gateway;

// Sends what was published on a topic, with its mark, to the connections concerned.
void ephemeral_receive(struct gateway *gateway, const char *topic, const char *data, size_t length);
// The client is typing in a channel; NULL: it named none. `typed_ms`: when that was last sent.
void ephemeral_typing(struct connection *c, int64_t *typed_ms, const char *channel_id);
