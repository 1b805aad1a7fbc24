// SPDX-License-Identifier: Apache-2.0
// Versions of Tidings side by side on one database and one Redis: each has functions of its own in
// both. Blocks.
#pragma once

#include "app/settings.h"
#include "base/cleanup.h"

struct session;
struct pipeline;

// How often versions_keep() is to be called, so that a version in use is never taken for unused.
int64_t versions_interval_s(const struct settings *settings);

// Says that this version runs, and drops the functions of those that have not run for
// TIDINGS_VERSIONS_KEEP_S. Errors as of session_call().
NODISCARD int versions_keep(const struct settings *settings, struct session *session,
                            struct pipeline *pipeline);
