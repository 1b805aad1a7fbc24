// SPDX-License-Identifier: Apache-2.0
// Deletes function libraries from Redis that no version in use needs.
#include "cache/libraries.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "command.h"
#include "redis_reply.h"

#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 1 << 20, PATTERN_SIZE = 128 };

struct drop {
    uint32_t tag;
    const char *own;
    const char *const *used;
    size_t used_count;
    struct buffer names; // libraries to delete, NUL-terminated one after another
    int dropped;
};

static bool is_used(const struct drop *drop, const char *name)
{
    if (strcmp(name, drop->own) == 0)
        return true;
    for (size_t i = 0; i < drop->used_count; i++)
        if (strcmp(name, drop->used[i]) == 0)
            return true;
    return false;
}

static void on_listed(void *arg, int r, const struct cache_value *value)
{
    struct drop *drop = CAST(drop, arg);
    size_t count = r == 0 ? cache_value_count(value) : 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = reply_library_name(cache_value_at(value, i));
        if (!is_used(drop, name))
            buffer_append(&drop->names, name, strlen(name) + 1);
    }
}

// An error means that another instance deleted the library first: not counted.
static void on_dropped(void *arg, int r, const struct cache_value *value)
{
    struct drop *drop = CAST(drop, arg);
    (void)value;
    drop->dropped += r == 0;
}

static int names_find(struct pipeline *pipeline, struct drop *drop)
{
    char pattern[PATTERN_SIZE];
    int kind = (int)(strlen(drop->own) - strlen(command_library_suffix(drop->own)));
    snprintf(pattern, sizeof pattern, "%.*s_*", kind, drop->own);
    pipeline_add(pipeline, 4, (const char *[]){"FUNCTION", "LIST", "LIBRARYNAME", pattern}, NULL);
    int r = pipeline_run(pipeline, on_listed, drop);
    return r == 0 && buffer_failed(&drop->names) ? -ERROR_MEMORY : r;
}

static int names_drop(struct pipeline *pipeline, struct drop *drop)
{
    const char *end = drop->names.data + drop->names.length;
    for (const char *name = drop->names.data; name < end; name += strlen(name) + 1) {
        log_write(LOG_INFO, "cache", "library %s is no longer in use", name);
        pipeline_add(pipeline, 3, (const char *[]){"FUNCTION", "DELETE", name}, NULL);
    }
    int r = pipeline_run(pipeline, on_dropped, drop);
    return r == -ERROR_INTERNAL || r == 0 ? drop->dropped : r;
}

int libraries_drop(struct pipeline *pipeline, const char *const *used, size_t count)
{
    struct drop drop = {.tag = TAG(drop),
                        .own = pipeline_library_name(pipeline),
                        .used = used,
                        .used_count = count};
    buffer_init(&drop.names, NAMES_MAX);
    int r = names_find(pipeline, &drop);
    if (r == 0)
        r = names_drop(pipeline, &drop);
    buffer_done(&drop.names);
    return r;
}
