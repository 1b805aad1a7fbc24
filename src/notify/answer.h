// SPDX-License-Identifier: Apache-2.0
// What a provider's answer means. Any thread.
#pragma once

#include "notify/notify.h"

// What came back: `status` 0 when nothing did, and `error` then says why.
struct answer_source {
    int status;
    int64_t retry_after_s; // of the header; negative: there was none
    const char *body;
    size_t length;
    const char *error;
};

// The outcome of `push`.
struct notify_answer answer_read(const struct notify_push *push,
                                 const struct answer_source *source);

// What a failed request for Google's access token means for the pushes that wait for it.
struct notify_answer answer_read_google(const struct answer_source *source);

// An outcome without a provider's answer.
struct notify_answer answer_make(enum notify_outcome outcome, const char *reason);
