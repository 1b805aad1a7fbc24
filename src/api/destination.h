// SPDX-License-Identifier: Apache-2.0
// Where a message is to go, as `channel` names it.
#pragma once

#include "invocation.h"

// `r` is -ERROR_CHANNEL_NOT_FOUND when `channel` names nothing that the caller may see.
typedef void destination_fn(void *arg, int r, const char *channel_id);

// Finds the channel: by its id, by its name with or without a '#', or by the id of a user, whose
// direct conversation with the caller is made when there is none yet. `channel` lives as long as
// the invocation. Calls `fn` once, maybe at once.
void destination_find(struct invocation *invocation, const char *channel, destination_fn *fn,
                      void *arg);

// Answers with `r`, which destination_find() told.
void destination_fail(struct invocation *invocation, int r);
