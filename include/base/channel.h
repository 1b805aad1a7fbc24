// SPDX-License-Identifier: Apache-2.0
// The kinds of conversations. All of them are channels.
#pragma once

#include <stdbool.h>

// The values of the column channels.type. Only members see channels that are not CHANNEL_PUBLIC.
enum channel_type {
    CHANNEL_PUBLIC,
    CHANNEL_PRIVATE,
    CHANNEL_MPIM, // a direct conversation of a group
    CHANNEL_IM,   // a direct conversation of two, or with oneself
    CHANNEL_TYPE_MAX
};

// Whether the channel is a direct conversation, where every message counts as a mention.
static inline bool channel_type_is_direct(enum channel_type type)
{
    return type == CHANNEL_MPIM || type == CHANNEL_IM;
}

// "channel", "group", "mpim" or "im", as in frames.
const char *channel_type_name(enum channel_type type);
