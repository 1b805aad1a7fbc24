// SPDX-License-Identifier: Apache-2.0
// A set of workspaces, such as those with devices: their ids in a buffer, sorted, EVENT_ID_SIZE
// bytes each.
#pragma once

#include "base/buffer.h"
#include "events/event.h"
#include "store/session.h"

#include <stdbool.h>

// Appends the ids that `statement`, without parameters, returns sorted in its first column. Blocks
// on Postgres. Errors of session_call(); -ERROR_MEMORY.
NODISCARD int workspace_ids_read(struct session *session, const struct statement *statement,
                                 struct buffer *ids);

bool workspace_ids_have(const struct buffer *ids, const char *id);
