// SPDX-License-Identifier: Apache-2.0
// Frames that are stored nowhere: user_typing, and what others publish so.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct connection;
struct gateway;

void ephemeral_hear(struct gateway *gateway, const char *topic, const char *data, size_t length);
// The client types in a channel; NULL: it named none. `typed_ms` is when that was last sent on.
void ephemeral_typing(struct connection *c, int64_t *typed_ms, const char *channel_id);
