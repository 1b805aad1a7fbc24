// SPDX-License-Identifier: Apache-2.0
// Who is active, and needs no push: Redis knows. On the thread of the pipeline; blocks.
#pragma once

#include "cache/pipeline.h"

// Tells of each of `count` users whether they are active: whether they have a connection, or, with
// `by_word`, a socket on which they have said something lately. An error: Redis is away, and nobody
// is.
NODISCARD int activity_ask(struct pipeline *pipeline, bool by_word, const char *const *users,
                           size_t count, bool *ret_active);
