// SPDX-License-Identifier: Apache-2.0
// Versions of Tidings running side by side on one database and one Redis, each with functions of
// its own in both. Blocks.
#pragma once

#include "app/settings.h"
#include "base/cleanup.h"

struct session;
struct pipeline;

// Interval at which to call versions_renew(), so that a version in use never counts as unused.
int64_t versions_interval_s(const struct settings *settings);

// Records that this version is running, and drops the functions of versions that have not run for
// TIDINGS_VERSIONS_KEEP_S. Errors of session_call().
NODISCARD int versions_renew(const struct settings *settings, struct session *session,
                             struct pipeline *pipeline);
