// SPDX-License-Identifier: Apache-2.0
// Resolves a message's destination, the argument `channel`.
#pragma once

#include "invocation.h"

// `r` is -ERROR_CHANNEL_NOT_FOUND if `channel` is nothing that the caller may see.
typedef void destination_fn(void *arg, int r, const char *channel_id);

// Finds the channel by id, by name with or without '#', or by the id of a user, whose direct
// conversation with the caller is created if needed. `channel` must live as long as the invocation.
// Calls `fn` once, possibly inside this call.
void destination_find(struct invocation *invocation, const char *channel, destination_fn *fn,
                      void *arg);

// Replies with the error `r` of destination_find().
void destination_fail(struct invocation *invocation, int r);
