// SPDX-License-Identifier: Apache-2.0
// Applies the rate limits per token, method and channel, and of request bytes per user.
#include "limits.h"

#include "base/metrics.h"
#include "http/server.h"

// Posts to an incoming webhook: one a second, after a burst.
enum { WEBHOOK_BURST = 10 };

// Refuses the call if there is something to wait for.
static bool pass(struct invocation *invocation, int64_t wait_s, enum metric metric)
{
    if (wait_s == 0)
        return true;
    metric_add(metric, 1);
    invocation_fail_for(invocation, wait_s);
    return false;
}

static bool take(struct invocation *invocation, const char *subject, const char *name,
                 int64_t per_minute, enum metric metric)
{
    if (per_minute == 0)
        return true;
    return pass(invocation, limiter_take(invocation->api->limiter, subject, name, per_minute),
                metric);
}

bool limits_admit_webhook(struct invocation *invocation)
{
    return pass(invocation,
                limiter_take_burst(invocation->api->limiter, invocation->actor->token_id, "webhook",
                                   WEBHOOK_BURST),
                METRIC_RATELIMITED_WEBHOOK);
}

bool limits_admit(struct invocation *invocation, int64_t per_minute)
{
    const struct actor *actor = invocation->actor;
    bool is_own = actor->rate_limit > 0;

    if (actor->token_id[0] == '\0')
        return true;
    return take(invocation, actor->token_id, invocation->method->name,
                is_own ? actor->rate_limit : per_minute,
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
