// SPDX-License-Identifier: Apache-2.0
// Caches the JSON of channels as shown to members (object and latest message), each with the
// version of the channel's row it was made from. If the row still has that version, the JSON is
// reused. Evicts the least recently used entry. One cache per loop.
#pragma once

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

enum { OBJECT_VERSION_SIZE = 48 };

struct channel_json_cache;

// Caches up to `bytes_max` bytes; 0: nothing.
NODISCARD int channel_json_cache_new(int64_t bytes_max, struct channel_json_cache **ret_cache);
void channel_json_cache_free(struct channel_json_cache *channel_json); // NULL is allowed

// The cached JSON of a channel, and its version; NULL: not cached. Both strings are valid until the
// next channel_json_cache_put().
const char *channel_json_cache_find(struct channel_json_cache *channel_json, const char *channel_id,
                                    const char **ret_version);

// Caches a copy of `text`, replacing the channel's entry. A text that is too long is not cached.
void channel_json_cache_put(struct channel_json_cache *channel_json, const char *channel_id,
                            const char *version, const char *text, size_t length);
