// SPDX-License-Identifier: Apache-2.0
#include "parts.h"

#include "base/embedded.h"

enum { CONNECT_TIMEOUT_MS = 3000, STATEMENTS_MAX = 20000, COMMANDS_MAX = 200000 };

struct store_options parts_store_options(const struct settings *settings)
{
    return (struct store_options){
        .database_url = settings->database_url,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .statement_timeout_ms = settings->statement_timeout_ms,
        .queue_max = STATEMENTS_MAX,
    };
}

struct cache_options parts_cache_options(const struct settings *settings)
{
    return (struct cache_options){
        .redis_url = settings->redis_url,
        .library = embedded_redis_functions[0].data,
        .library_name = "tidings_v1",
        .timeout_ms = settings->redis_timeout_ms,
        .pending_max = COMMANDS_MAX,
    };
}
