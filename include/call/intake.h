// SPDX-License-Identifier: Apache-2.0
// The bytes of bodies, or of replies, that a loop holds in memory, in total and per user. Body
// bytes count from their announcement or arrival until the request ends; reply bytes from their
// creation until they are sent.
#pragma once

#include "base/cleanup.h"
#include "base/id.h"
#include "base/metrics.h"

#include <stdint.h>

struct intake_owner;

struct intake {
    int64_t bytes_max;           // in total
    int64_t owner_bytes_max;     // per user
    int64_t strangers_bytes_max; // of all unauthenticated requests (owner "")
    int64_t bytes;
    struct intake_owner *owners; // those with bytes counted here
    enum metric gauge;
    enum metric refused_all;
    enum metric refused_owner;
    enum metric refused_strangers;
};

// Charges `bytes` to `owner` (at most ID_LENGTH_MAX characters). An owner without charged bytes may
// take any number that fits the total. -ERROR_RATELIMITED: the owner's limit is reached;
// -ERROR_BUSY: the total limit; -ERROR_MEMORY. Refusals are counted in the metrics.
NODISCARD int intake_take(struct intake *intake, const char *owner, int64_t bytes);
// The same for small amounts, ignoring the total limit: users who exhaust the total must not block
// the small calls of others.
NODISCARD int intake_take_small(struct intake *intake, const char *owner, int64_t bytes);
void intake_give(struct intake *intake, const char *owner, int64_t bytes);
// Moves bytes charged to `from` to `to`.
NODISCARD int intake_move(struct intake *intake, const char *from, const char *to, int64_t bytes);
