// SPDX-License-Identifier: Apache-2.0
// The server that tests take for Redis: TIDINGS_DEV_REDIS is `redis` (the default) or `valkey`.
#pragma once

#include <stdlib.h>
#include <string.h>

static inline const char *redis_program(void)
{
    const char *kind = getenv("TIDINGS_DEV_REDIS");
    return kind && strcmp(kind, "valkey") == 0 ? "valkey-server" : "redis-server";
}
