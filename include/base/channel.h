// SPDX-License-Identifier: Apache-2.0
// Conversation types. Every conversation is a channel.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// The values of the column channels.type. Only CHANNEL_PUBLIC is visible to non-members.
enum channel_type {
    CHANNEL_PUBLIC,
    CHANNEL_PRIVATE,
    CHANNEL_MPIM, // a group direct conversation
    CHANNEL_IM,   // a direct conversation of two users, or of one with themselves
    CHANNEL_TYPE_MAX
};

// The type stored as `number`; a number that is none counts as private.
static inline enum channel_type channel_type_of(int64_t number)
{
    return number >= 0 && number < CHANNEL_TYPE_MAX ? (enum channel_type)number : CHANNEL_PRIVATE;
}

// Whether the channel is a direct conversation. Every message there counts as a mention.
static inline bool channel_type_is_direct(enum channel_type type)
{
    return type == CHANNEL_MPIM || type == CHANNEL_IM;
}

// The name used in frames: "channel", "group", "mpim" or "im".
const char *channel_type_name(enum channel_type type);
