// SPDX-License-Identifier: Apache-2.0
// The function library, loaded into the test program's own redis-server.
#pragma once

#include "base/embedded.h"
#include "cache/pipeline.h"

#include <inttypes.h>
#include <time.h>

#include "private_redis.h"

enum { ANSWER_SIZE = 8192 };

static struct pipeline *pipeline;
static char answer[ANSWER_SIZE];

static void on_answer(void *arg, int r, const struct cache_value *value)
{
    (void)arg;
    (void)r;
    if (!value || cache_value_is_null(value))
        (void)snprintf(answer, sizeof answer, "nil");
    else if (cache_value_length(value) > 0)
        (void)snprintf(answer, sizeof answer, "%s", cache_value_text(value));
    else
        (void)snprintf(answer, sizeof answer, "%" PRId64, cache_value_int(value));
}

static int run(int count, const char *const *texts)
{
    pipeline_add(pipeline, count, texts, NULL);
    return pipeline_run(pipeline, on_answer, NULL);
}

// The answer to one command, as text.
#define ASK(...)                                                                                   \
    (assert_int_equal(run(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *),            \
                          (const char *[]){__VA_ARGS__}),                                          \
                      0),                                                                          \
     answer)

static int start(void **state)
{
    (void)state;
    if (redis_prepare() < 0 || redis_launch() < 0)
        return -1;
    const struct cache_options options = {.redis_url = redis.url,
                                          .library = embedded_redis_functions[0].data,
                                          .library_name = embedded_redis_functions[0].name,
                                          .timeout_ms = 5000};
    assert_int_equal(pipeline_new(&options, &pipeline), 0);
    for (int i = 0; i < 400; i++) {
        if (run(1, (const char *[]){"PING"}) == 0)
            return 0;
        (void)nanosleep(&(struct timespec){.tv_nsec = 25000000}, NULL);
    }
    return -1;
}

static int stop(void **state)
{
    (void)state;
    pipeline_free(pipeline);
    redis_kill();
    redis_forget();
    return 0;
}

static int wipe(void **state)
{
    (void)state;
    return run(1, (const char *[]){"FLUSHALL"});
}
