// SPDX-License-Identifier: Apache-2.0
// Channels as they were last shown to a member (object and latest message), each with the version
// of the channel's row that it was made of. Whoever reads that row again and finds the version
// unchanged need not make the object anew. Of one loop; in use last is kept longest.
#pragma once

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

enum { OBJECT_VERSION_SIZE = 48 };

struct channel_json_cache;

// Keeps up to `bytes_max` bytes; 0: nothing.
NODISCARD int channel_json_cache_new(int64_t bytes_max, struct channel_json_cache **ret_cache);
void channel_json_cache_free(struct channel_json_cache *channel_json); // NULL does nothing

// What is kept of a channel, or NULL; both texts stay until the next objects_keep().
const char *channel_json_cache_find(struct channel_json_cache *channel_json, const char *channel_id,
                                    const char **ret_version);

// Copies `text`, in place of what was kept of the channel. What is too long is not kept.
void channel_json_cache_keep(struct channel_json_cache *channel_json, const char *channel_id,
                             const char *version, const char *text, size_t length);
