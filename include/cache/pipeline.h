// SPDX-License-Identifier: Apache-2.0
// A worker thread's access to Redis: a blocking connection that sends many commands and then reads
// all replies. Not thread-safe: one thread per pipeline. Reconnects and loads the function library
// by itself.
#pragma once

#include "cache/cache.h"

struct pipeline;

NODISCARD int pipeline_new(const struct cache_options *options, struct pipeline **ret_pipeline);
void pipeline_free(struct pipeline *pipeline);

const char *pipeline_library_name(const struct pipeline *pipeline); // as in its options

// Queues one command. In an FCALL, name the function without the library's version.
void pipeline_add(struct pipeline *pipeline, int count, const char *const *texts,
                  const size_t *lengths);

// Sends as many queued bytes as the socket accepts without blocking, so that Redis can start.
// pipeline_run() sends the rest.
void pipeline_push(struct pipeline *pipeline);

// Sends all queued commands and waits for all replies, calling fn(arg, r, value) for each in order
// (fn may be NULL; r is -ERROR_UNAVAILABLE for replies that did not arrive). 0: no errors.
// -ERROR_UNAVAILABLE: none, some or all commands may have taken effect. -ERROR_INTERNAL: Redis
// returned errors for some. Empties the pipeline in every case. Callers retry everything, so all
// commands must be idempotent.
NODISCARD int pipeline_run(struct pipeline *pipeline, cache_fn *fn, void *arg);
