// SPDX-License-Identifier: Apache-2.0
// Function libraries that releases leave in Redis: each loads its own, "tidings_<version>", beside
// those of others.
#pragma once

#include "cache/pipeline.h"

// Drops every library of one's own kind ("tidings_…") but one's own and those in `keep` (names; may
// be NULL when count is 0). One that is dropped though in use is loaded again by who calls it. The
// pipeline must be empty. Returns how many were dropped, or as pipeline_run().
NODISCARD int libraries_drop(struct pipeline *pipeline, const char *const *keep, size_t count);
