// SPDX-License-Identifier: Apache-2.0
// Redis as a worker thread sees it: a blocking connection that sends many commands and then reads
// all their answers. Not thread safe: one thread per pipeline. Reconnects, and loads the function
// library, by itself.
#pragma once

#include "cache/cache.h"

struct pipeline;

NODISCARD int pipeline_new(const struct cache_options *options, struct pipeline **ret_pipeline);
void pipeline_free(struct pipeline *pipeline);

const char *pipeline_library_name(const struct pipeline *pipeline); // as in its options

// Queues one command to be sent; in an FCALL the function goes by its name without the version of
// the library.
void pipeline_add(struct pipeline *pipeline, int count, const char *const *texts,
                  const size_t *lengths);

// Sends as much of what was added as the server takes without waiting, so that it can begin;
// pipeline_run() sends the rest.
void pipeline_push(struct pipeline *pipeline);

// Sends all that was added and waits for all answers, calling fn(arg, r, value) for each in order
// (fn may be NULL). 0 if all were answered without an error; -ERROR_UNAVAILABLE (none, some or
// all may have taken effect); -ERROR_INTERNAL (some were answered with an error). The pipeline is
// empty afterwards in any case: callers repeat everything, and send only commands that may be
// repeated.
NODISCARD int pipeline_run(struct pipeline *pipeline, cache_fn *fn, void *arg);
