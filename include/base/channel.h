// SPDX-License-Identifier: Apache-2.0
// The kinds of conversations, which all are channels.
#pragma once

#include <stdbool.h>

// As channels.type holds them. All but CHANNEL_PUBLIC are seen by their members alone.
enum channel_type {
    CHANNEL_PUBLIC,
    CHANNEL_PRIVATE,
    CHANNEL_MPIM, // a direct conversation of a group
    CHANNEL_IM,   // a direct conversation of two, or with oneself
    CHANNEL_TYPE_MAX
};

// Whether all that is said there is for everyone in it, so that every message counts as a mention.
static inline bool channel_type_is_direct(enum channel_type type)
{
    return type == CHANNEL_MPIM || type == CHANNEL_IM;
}

// "channel", "group", "mpim", "im": as frames name it.
const char *channel_type_name(enum channel_type type);
