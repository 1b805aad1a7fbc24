// SPDX-License-Identifier: Apache-2.0
// Answers as hiredis' reader gives them, and what the greeting asks of them.
#pragma once

#include "cache/cache.h"

#include <hiredis/hiredis.h>

// The same object under its public name.
static inline const struct cache_value *reply_value(const redisReply *reply)
{
    return (const struct cache_value *)(const void *)reply;
}

enum { RUN_ID_SIZE = 48 };

// Copies the run id out of INFO's text; "" when there is none. `ret_run_id` has RUN_ID_SIZE bytes.
void reply_run_id(const struct cache_value *info, char *ret_run_id);

// The name of a library in an answer of FUNCTION LIST; "" when there is none.
const char *reply_library_name(const struct cache_value *library);

// Whether the answer of FUNCTION LIST LIBRARYNAME … WITHCODE shows just the library of `options`.
bool reply_has_library(const struct cache_value *list, const struct cache_options *options);

// Whether a command failed for want of the function library.
bool reply_is_unknown_function(const redisReply *reply);
