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
