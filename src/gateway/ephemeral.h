// SPDX-License-Identifier: Apache-2.0
// Frames that are stored nowhere: user_typing, and what others publish so.
#pragma once

#include <stddef.h>

struct connection;
struct gateway;

void ephemeral_hear(struct gateway *gateway, const char *topic, const char *data, size_t length);
void ephemeral_typing(struct connection *c, const char *channel_id); // NULL: the client named none
