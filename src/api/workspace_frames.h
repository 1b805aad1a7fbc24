// SPDX-License-Identifier: Apache-2.0
// Frames to all connections of a workspace about what changed in it.
#pragma once

#include "invocation.h"

// Publishes {"type":type, …members of the JSON object `json`, "cache_ts", "event_ts"}.
void workspace_publish(const struct invocation *invocation, const char *type, const char *json,
                       size_t length);

// The token, user or app may have changed: nothing cached about it holds.
void workspace_session_changed(const struct invocation *invocation, const char *id);

// For done_fn: the columns after error and reply are the member `user` as others see it, and the
// user's id.
void workspace_user_created(struct invocation *invocation, const struct result *result);
void workspace_user_changed(struct invocation *invocation, const struct result *result);
