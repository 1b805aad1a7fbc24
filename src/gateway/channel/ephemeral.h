// SPDX-License-Identifier: Apache-2.0
// Frames that are not stored: user_typing, and ephemeral messages of other instances.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct connection;
struct gateway;

void ephemeral_receive(struct gateway *gateway, const char *topic, const char *data, size_t length);
// The client is typing in a channel; NULL: it named none. `typed_ms`: when that was last sent.
void ephemeral_typing(struct connection *c, int64_t *typed_ms, const char *channel_id);
