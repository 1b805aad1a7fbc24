// SPDX-License-Identifier: Apache-2.0
// Replies from hiredis' reader, and the ones that the greeting evaluates.
#pragma once

#include "cache/cache.h"

#include <hiredis/hiredis.h>

// The same object as the public type.
static inline const struct cache_value *reply_value(const redisReply *reply)
{
    return (const struct cache_value *)(const void *)reply;
}

enum { RUN_ID_SIZE = 48 };

// Copies the run id from INFO's text; "" if there is none. `ret_run_id` has RUN_ID_SIZE bytes.
void reply_run_id(const struct cache_value *info, char *ret_run_id);

// The name of a library in a reply to FUNCTION LIST; "" if there is none.
const char *reply_library_name(const struct cache_value *library);

// Whether the reply to FUNCTION LIST LIBRARYNAME … WITHCODE contains exactly the library of
// `options`.
bool reply_has_library(const struct cache_value *list, const struct cache_options *options);

// Whether a command failed because the function library is missing.
bool reply_is_unknown_function(const redisReply *reply);

// Whether a command failed because the server is a replica, as a former master is after a failover.
bool reply_is_of_replica(const redisReply *reply);
