// SPDX-License-Identifier: Apache-2.0
// An LRU cache of channel objects as JSON text; one per loop.
#include "channel_json_cache.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A larger text (than 1/16 of the cache) would evict too many others.
enum { PART_MAX = 16 };

struct object {
    UT_hash_handle hh;
    char channel_id[ID_SIZE];
    char version[OBJECT_VERSION_SIZE];
    size_t size; // of this struct with its text
    char text[];
};

struct channel_json_cache {
    struct object *all; // least recently used first
    size_t bytes;
    size_t bytes_max;
};

int channel_json_cache_new(int64_t bytes_max, struct channel_json_cache **ret_cache)
{
    struct channel_json_cache *channel_json = calloc(1, sizeof *channel_json);

    if (!channel_json)
        return -ERROR_MEMORY;
    channel_json->bytes_max = (size_t)bytes_max;
    *ret_cache = channel_json;
    return 0;
}

static void object_drop(struct channel_json_cache *channel_json, struct object *object)
{
    HASH_DEL(channel_json->all, object);
    channel_json->bytes -= object->size;
    free(object);
}

void channel_json_cache_free(struct channel_json_cache *channel_json)
{
    if (!channel_json)
        return;
    while (channel_json->all)
        object_drop(channel_json, channel_json->all);
    free(channel_json);
}

static struct object *object_find(const struct channel_json_cache *channel_json,
                                  const char *channel_id)
{
    struct object *object;

    HASH_FIND_STR(channel_json->all, channel_id, object);
    return object;
}

const char *channel_json_cache_find(struct channel_json_cache *channel_json, const char *channel_id,
                                    const char **ret_version)
{
    struct object *object = object_find(channel_json, channel_id);

    if (!object)
        return NULL;
    HASH_DEL(channel_json->all, object);
    HASH_ADD_STR(channel_json->all, channel_id, object);
    *ret_version = object->version;
    return object->text;
}

void channel_json_cache_put(struct channel_json_cache *channel_json, const char *channel_id,
                            const char *version, const char *text, size_t length)
{
    struct object *object = object_find(channel_json, channel_id);
    size_t size = sizeof *object + length + 1;

    if (object)
        object_drop(channel_json, object);
    if (size > channel_json->bytes_max / PART_MAX) {
        metric_add(METRIC_CHANNEL_JSON_DROPPED, 1);
        return;
    }
    object = calloc(1, size);
    if (!object)
        return;
    while (channel_json->bytes + size > channel_json->bytes_max) {
        object_drop(channel_json, channel_json->all);
        metric_add(METRIC_CHANNEL_JSON_DROPPED, 1);
    }
    snprintf(object->channel_id, sizeof object->channel_id, "%s", channel_id);
    snprintf(object->version, sizeof object->version, "%s", version);
    memcpy(object->text, text, length);
    object->size = size;
    channel_json->bytes += size;
    HASH_ADD_STR(channel_json->all, channel_id, object);
}
