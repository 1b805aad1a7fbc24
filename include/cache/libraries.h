// SPDX-License-Identifier: Apache-2.0
// Cleans up function libraries in Redis. Each release loads its own, "tidings_<version>", beside
// those of other releases.
#pragma once

#include "cache/pipeline.h"

// Deletes all libraries of our kind ("tidings_…"), except the pipeline's own and those in `used`
// (names; may be NULL if count is 0). A client that still uses a deleted library loads it again.
// The pipeline must be empty. Returns the number deleted, or the errors of pipeline_run().
NODISCARD int libraries_drop(struct pipeline *pipeline, const char *const *used, size_t count);
