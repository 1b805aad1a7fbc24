// SPDX-License-Identifier: Apache-2.0
// Redis as a worker thread sees it: a blocking connection that takes many commands and then all
// their answers. Not thread safe: one thread per pipeline. Reconnects, and loads the function
// library, by itself.
#pragma once

#include "cache/cache.h"

struct pipeline;

NODISCARD int pipeline_new(const struct cache_options *options, struct pipeline **ret_pipeline);
void pipeline_free(struct pipeline *pipeline);

// Adds one command to those to be sent.
void pipeline_add(struct pipeline *pipeline, int count, const char *const *texts,
                  const size_t *lengths);

// Sends what the server takes now of what was added, so that it can begin; pipeline_run() does the
// rest.
void pipeline_push(struct pipeline *pipeline);

// Sends all that was added and waits for all answers, calling fn(arg, r, value) for each in order
// (fn may be NULL). 0 when all were answered without an error; -ERROR_UNAVAILABLE (none, some or
// all may have been done) or -ERROR_INTERNAL (some answered with an error). Empty afterwards in any
// case: callers repeat the whole, since every command they send may be repeated.
NODISCARD int pipeline_run(struct pipeline *pipeline, cache_fn *fn, void *arg);
