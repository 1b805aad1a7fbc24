// SPDX-License-Identifier: Apache-2.0
// Options of modules that are used in several places, from the settings.
#pragma once

#include "app/settings.h"
#include "base/secrets.h"
#include "cache/cache.h"
#include "store/store.h"

struct store_options parts_store_options(const struct settings *settings);
struct cache_options parts_cache_options(const struct settings *settings);
void parts_secrets(const struct settings *settings, struct secrets *ret_secrets);

// Whether this version can run on the database; if not, logs the reason. 0 also if the database is
// down. -ERROR_REFUSED, -ERROR_INTERNAL. Blocks.
NODISCARD int parts_check_database(const struct settings *settings);
