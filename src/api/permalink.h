// SPDX-License-Identifier: Apache-2.0
// Links to messages.
#pragma once

#include "chat/message.h"
#include "invocation.h"

// Writes the member `permalink`: <base>archives/C…/p1503435956000247; for a reply, followed by
// ?thread_ts=…&cid=C….
void permalink_write(struct json_writer *w, const struct invocation *invocation,
                     const char *channel_id, int64_t ts, int64_t thread_ts);

// Writes a message with its permalink.
void permalink_write_message(struct json_writer *w, const struct invocation *invocation,
                             const char *channel_id, const struct message *message);
