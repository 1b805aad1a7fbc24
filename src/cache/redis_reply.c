// SPDX-License-Identifier: Apache-2.0
// Reads values from Redis' replies.
#include "redis_reply.h"

#include "base/id.h"

#include <stdlib.h>
#include <string.h>

static const redisReply *reply_of(const struct cache_value *value)
{
    return (const redisReply *)(const void *)value;
}

static bool is_text(const redisReply *reply)
{
    return reply && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS ||
                     reply->type == REDIS_REPLY_ERROR);
}

bool cache_value_is_null(const struct cache_value *value)
{
    return !value || reply_of(value)->type == REDIS_REPLY_NIL;
}

int64_t cache_value_int(const struct cache_value *value)
{
    const redisReply *reply = reply_of(value);
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        return reply->integer;
    return is_text(reply) ? strtoll(reply->str, NULL, 10) : 0;
}

bool cache_value_number(const struct cache_value *value, int64_t *ret_number)
{
    const redisReply *reply = reply_of(value);
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        *ret_number = reply->integer;
    else if (!is_text(reply) || integer_parse(reply->str, reply->len, 0, INT64_MAX, ret_number) < 0)
        return false;
    return *ret_number >= 0;
}

const char *cache_value_text(const struct cache_value *value)
{
    return is_text(reply_of(value)) ? reply_of(value)->str : "";
}

size_t cache_value_length(const struct cache_value *value)
{
    return is_text(reply_of(value)) ? reply_of(value)->len : 0;
}

size_t cache_value_count(const struct cache_value *value)
{
    const redisReply *reply = reply_of(value);
    return reply && reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
}

const struct cache_value *cache_value_at(const struct cache_value *value, size_t index)
{
    return index < cache_value_count(value) ? reply_value(reply_of(value)->element[index]) : NULL;
}

void reply_run_id(const struct cache_value *info, char *ret_run_id)
{
    static const char key[] = "run_id:";
    const char *text = cache_value_text(info);
    const char *found = strstr(text, key);
    size_t length = found ? strcspn(found + sizeof key - 1, "\r\n") : 0;
    if (length >= RUN_ID_SIZE)
        length = RUN_ID_SIZE - 1;
    if (length > 0)
        memcpy(ret_run_id, found + sizeof key - 1, length);
    ret_run_id[length] = '\0';
}

// The value after `key` in a flat list of keys and values.
static const struct cache_value *pair_find(const struct cache_value *pairs, const char *key)
{
    for (size_t i = 0; i + 1 < cache_value_count(pairs); i += 2)
        if (strcmp(cache_value_text(cache_value_at(pairs, i)), key) == 0)
            return cache_value_at(pairs, i + 1);
    return NULL;
}

const char *reply_library_name(const struct cache_value *library)
{
    return cache_value_text(pair_find(library, "library_name"));
}

bool reply_has_library(const struct cache_value *list, const struct cache_options *options)
{
    const struct cache_value *library = cache_value_at(list, 0);
    const struct cache_value *code = pair_find(library, "library_code");
    return strcmp(cache_value_text(code), options->library) == 0;
}

bool reply_is_unknown_function(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && strstr(reply->str, "Function not found");
}

bool reply_is_of_replica(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "READONLY ", 9) == 0;
}
