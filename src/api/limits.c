// SPDX-License-Identifier: Apache-2.0
// Applies the rate limits per token, method and channel, and of request bytes per user.
#include "limits.h"

#include "base/metrics.h"
#include "http/server.h"

#include <string.h>

enum { LIMIT_MAX = 1000000000, NAME_SIZE = 64 };

// Parses one "method=number" of `length` bytes.
static int limit_read(const char *text, size_t length, struct limits *limits)
{
    char name[NAME_SIZE];
    const char *equals = memchr(text, '=', length);
    size_t name_length = equals ? (size_t)(equals - text) : 0;

    if (!equals || name_length >= sizeof name)
        return -ERROR_INVALID_ARGUMENTS;
    memcpy(name, text, name_length);
    name[name_length] = '\0';
    const struct method *method = method_find(name);
    if (!method)
        return -ERROR_INVALID_ARGUMENTS;
    return integer_parse(equals + 1, length - name_length - 1, 0, LIMIT_MAX,
                         &limits->methods[method_number(method)]);
}

int limits_read(const char *text, int64_t others, struct limits *ret_limits)
{
    struct limits limits = {0};

    for (size_t i = 0; i < METHODS_MAX; i++)
        limits.methods[i] = others;
    while (text[0] != '\0') {
        size_t length = strcspn(text, ",");
        int r = limit_read(text, length, &limits);
        if (r < 0)
            return r;
        text += length + (text[length] == ',');
    }
    *ret_limits = limits;
    return 0;
}

int api_limits_check(const char *text)
{
    struct limits limits;

    return limits_read(text, 0, &limits);
}

static bool take(struct invocation *invocation, const char *subject, const char *name,
                 int64_t per_minute, enum metric metric)
{
    if (per_minute == 0)
        return true;
    int64_t wait_s = limiter_take(invocation->api->limiter, subject, name, per_minute);
    if (wait_s == 0)
        return true;
    metric_add(metric, 1);
    invocation_fail_for(invocation, wait_s);
    return false;
}

bool limits_admit(struct invocation *invocation)
{
    const struct actor *actor = invocation->actor;
    const struct method *method = invocation->method;
    bool is_own = actor->rate_limit > 0;
    int64_t per_minute =
        is_own ? actor->rate_limit : invocation->api->limits->methods[method_number(method)];

    if (actor->token_id[0] == '\0')
        return true;
    return take(invocation, actor->token_id, method->name, per_minute,
                is_own ? METRIC_RATELIMITED_TOKEN : METRIC_RATELIMITED_METHOD);
}

bool limits_admit_post(struct invocation *invocation, const char *channel_id)
{
    return take(invocation, channel_id, "posts", invocation->api->limits->channel,
                METRIC_RATELIMITED_CHANNEL);
}

int64_t limits_ask_body(struct api *api, const char *user_id)
{
    int64_t per_minute = api->options.settings.rate_bytes;
    if (per_minute == 0)
        return 0;
    int64_t wait_s = limiter_take_many(api->limiter, user_id, "bytes", per_minute, 0);
    if (wait_s > 0)
        metric_add(METRIC_RATELIMITED_BYTES, 1);
    return wait_s;
}

bool limits_admit_body(struct invocation *invocation)
{
    const struct api_options *options = &invocation->api->options;
    bool is_known = invocation->actor->type != 0;
    int64_t bytes = request_body_bytes(invocation->request);
    int64_t per_minute =
        is_known ? options->settings.rate_bytes : options->settings.rate_strangers_bytes;

    if (per_minute == 0 || bytes <= SERVER_BODY_SMALL_BYTES)
        return true;
    int64_t wait_s = limiter_take_many(invocation->api->limiter,
                                       is_known ? invocation_body_owner(invocation) : "nobody",
                                       "bytes", per_minute, bytes);
    if (wait_s == 0)
        return true;
    metric_add(METRIC_RATELIMITED_BYTES, 1);
    invocation_fail_for(invocation, wait_s);
    return false;
}
