// SPDX-License-Identifier: Apache-2.0
// The names of the channel types.
#include "base/channel.h"

#include "base/check.h"

static const char *const names[CHANNEL_TYPE_MAX] = {
    [CHANNEL_PUBLIC] = "channel",
    [CHANNEL_PRIVATE] = "group",
    [CHANNEL_MPIM] = "mpim",
    [CHANNEL_IM] = "im",
};

const char *channel_type_name(enum channel_type type)
{
    ASSERT(type < CHANNEL_TYPE_MAX);
    return names[type];
}
