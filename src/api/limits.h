// SPDX-License-Identifier: Apache-2.0
// Rate limits per token, method and channel.
#pragma once

#include "invocation.h"
#include "limiter.h"

struct limits {
    int64_t methods[METHODS_MAX]; // calls per minute, by method_number(); 0: unlimited
    int64_t channel;              // posts per minute
};

// Parses "chat.postMessage=600,…"; all other methods get the limit `others`.
// -ERROR_INVALID_ARGUMENTS: malformed.
NODISCARD int limits_read(const char *text, int64_t others, struct limits *ret_limits);

// Whether this call, or this post to a channel, is within its limit. A call's is `per_minute`,
// unless its token has one of its own. False: an error was replied.
NODISCARD bool limits_admit(struct invocation *invocation, int64_t per_minute);
// That of an incoming webhook is a fixed one.
NODISCARD bool limits_admit_webhook(struct invocation *invocation);
NODISCARD bool limits_admit_post(struct invocation *invocation, const char *channel_id);

// Likewise for the body of a call. Only large bodies count for a user; all callers without a token
// share one limit.
NODISCARD bool limits_admit_body(struct invocation *invocation);
// Whether the user may send a body now: 0, or the number of seconds to wait.
int64_t limits_ask_body(struct api *api, const char *user_id);
