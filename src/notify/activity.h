// SPDX-License-Identifier: Apache-2.0
// Finds the active users, who need no push, in Redis. On the pipeline's thread; blocks.
#pragma once

#include "cache/pipeline.h"

// Sets for each of `count` users whether they are active: connected or, with `by_word`, recently
// active on a socket. On error Redis is down, and nobody counts as active.
NODISCARD int activity_ask(struct pipeline *pipeline, bool by_word, const char *const *users,
                           size_t count, bool *ret_active);
