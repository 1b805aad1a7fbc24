// SPDX-License-Identifier: Apache-2.0
// How often who may call what.
#pragma once

#include "limiter.h"
#include "methods.h"

struct limits {
    int64_t methods[METHODS_MAX]; // calls a minute, by method_number(); 0: any number
    int64_t channel;              // posts a minute
};

// `text` is "chat.postMessage=600,…"; the methods that it does not name have `others`.
// -ERROR_INVALID_ARGUMENTS for anything else.
NODISCARD int limits_read(const char *text, int64_t others, struct limits *ret_limits);

// Whether this call, or this post to a channel, is one too many; false after it was answered so.
NODISCARD bool limits_admit(struct invocation *invocation);
NODISCARD bool limits_admit_post(struct invocation *invocation, const char *channel_id);

// The same for the body of a call. Of a user's only what is large counts; all who call without a
// token count as one.
NODISCARD bool limits_admit_body(struct invocation *invocation);
// Whether a body of the user's may come now: 0, or for how many seconds not.
int64_t limits_ask_body(struct api *api, const char *user_id);
