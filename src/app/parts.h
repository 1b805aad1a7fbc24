// SPDX-License-Identifier: Apache-2.0
// The options of parts that several places make, from the settings.
#pragma once

#include "app/settings.h"
#include "base/secrets.h"
#include "cache/cache.h"
#include "store/store.h"

struct store_options parts_store_options(const struct settings *settings);
struct cache_options parts_cache_options(const struct settings *settings);
void parts_secrets(const struct settings *settings, struct secrets *ret_secrets);

// Whether this version can work on the database; the log says why not. One that is away may be
// right: 0. -ERROR_REFUSED, -ERROR_INTERNAL. Blocks.
NODISCARD int parts_check_database(const struct settings *settings);
