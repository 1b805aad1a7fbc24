// SPDX-License-Identifier: Apache-2.0
// What a post's event needs of its channel beside the head, in one number, so that a batch returns
// one array. channel_traits() in sql/00_hot_channels.sql packs it; hot_heads keeps it, and the
// previous release reads it there.
#pragma once

#include "base/channel.h"

#include <stdint.h>

struct traits {
    enum channel_type type;
    int64_t strategy;   // enum strategy
    int64_t generation; // of the counts in Redis
};

static inline struct traits traits_unpack(int64_t packed)
{
    return (struct traits){.type = (enum channel_type)(packed & 3),
                           .strategy = packed >> 2 & 3,
                           .generation = packed >> 4};
}
