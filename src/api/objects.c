// SPDX-License-Identifier: Apache-2.0
// An LRU cache of channel objects as JSON text; one for each loop.
#include "objects.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// One that is larger than this part of all would push out too many others.
enum { PART_MAX = 16 };

struct object {
    UT_hash_handle hh;
    char channel_id[ID_SIZE];
    char version[OBJECT_VERSION_SIZE];
    size_t size; // of all this
    char text[];
};

struct objects {
    struct object *all; // in the order of their last use
    size_t bytes;
    size_t bytes_max;
};

int objects_new(int64_t bytes_max, struct objects **ret_objects)
{
    struct objects *objects = calloc(1, sizeof *objects);

    if (!objects)
        return -ERROR_MEMORY;
    objects->bytes_max = (size_t)bytes_max;
    *ret_objects = objects;
    return 0;
}

static void object_drop(struct objects *objects, struct object *object)
{
    HASH_DEL(objects->all, object);
    objects->bytes -= object->size;
    free(object);
}

void objects_free(struct objects *objects)
{
    if (!objects)
        return;
    while (objects->all)
        object_drop(objects, objects->all);
    free(objects);
}

static struct object *object_find(const struct objects *objects, const char *channel_id)
{
    struct object *object;

    HASH_FIND_STR(objects->all, channel_id, object);
    return object;
}

const char *objects_find(struct objects *objects, const char *channel_id, const char **ret_version)
{
    struct object *object = object_find(objects, channel_id);

    if (!object)
        return NULL;
    HASH_DEL(objects->all, object);
    HASH_ADD_STR(objects->all, channel_id, object);
    *ret_version = object->version;
    return object->text;
}

void objects_keep(struct objects *objects, const char *channel_id, const char *version,
                  const char *text, size_t length)
{
    struct object *object = object_find(objects, channel_id);
    size_t size = sizeof *object + length + 1;

    if (object)
        object_drop(objects, object);
    if (size > objects->bytes_max / PART_MAX)
        return;
    object = calloc(1, size);
    if (!object)
        return;
    while (objects->bytes + size > objects->bytes_max)
        object_drop(objects, objects->all);
    snprintf(object->channel_id, sizeof object->channel_id, "%s", channel_id);
    snprintf(object->version, sizeof object->version, "%s", version);
    memcpy(object->text, text, length);
    object->size = size;
    objects->bytes += size;
    HASH_ADD_STR(objects->all, channel_id, object);
}
