// SPDX-License-Identifier: Apache-2.0
// Finds the active users, whose pushes wait, in Redis. On the pipeline's thread; blocks.
#pragma once

#include "cache/pipeline.h"

// A user who is active for longer is asked for again by then: a socket that closes ends it.
enum { ACTIVITY_MAX_S = 60 };

// Sets for each of `count` users how long they stay active; 0: they are not. Active is who is
// connected or, with `by_word`, was recently active on a socket. On error Redis is down, and nobody
// counts as active.
NODISCARD int activity_ask(struct pipeline *pipeline, bool by_word, const char *const *users,
                           size_t count, int64_t *ret_active_s);
