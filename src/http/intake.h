// SPDX-License-Identifier: Apache-2.0
// How many bytes of bodies, or of replies, one loop holds, and each user of it: those of bodies
// from the moment they are announced or come until the request they belong to ends, those of
// replies from when they are made until they are sent.
#pragma once

#include "base/cleanup.h"
#include "base/id.h"
#include "base/metrics.h"

#include <stdint.h>

struct intake_owner;

struct intake {
    int64_t bytes_max;           // of all
    int64_t owner_bytes_max;     // of a user
    int64_t strangers_bytes_max; // of all whose user is not known (owner "")
    int64_t bytes;
    struct intake_owner *owners; // with bytes here
    enum metric gauge;
    enum metric refused_all;
    enum metric refused_owner;
    enum metric refused_strangers;
};

// Takes `bytes` for `owner` (up to ID_LENGTH_MAX characters). Whoever has none is let through with
// any number that fits the whole. -ERROR_RATELIMITED: the owner's share is used up; -ERROR_BUSY:
// the whole; -ERROR_MEMORY. Refusals are counted in the metrics.
NODISCARD int intake_take(struct intake *intake, const char *owner, int64_t bytes);
// The same for what is small, and let in while the whole is full, too: so that users who hold all
// of it do not keep others from small calls.
NODISCARD int intake_take_small(struct intake *intake, const char *owner, int64_t bytes);
void intake_give(struct intake *intake, const char *owner, int64_t bytes);
// Moves what `from` has taken to `to`.
NODISCARD int intake_move(struct intake *intake, const char *from, const char *to, int64_t bytes);
