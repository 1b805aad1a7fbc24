// SPDX-License-Identifier: Apache-2.0
// Interprets providers' responses. Any thread.
#pragma once

#include "notify/notify.h"

// A provider's response. `status` 0: there was none, and `error` gives the reason.
struct answer_source {
    int status;
    int64_t retry_after_s; // from the header; negative: none
    const char *body;
    size_t length;
    const char *error;
};

// The outcome of `push`.
struct notify_answer answer_read(const struct notify_push *push,
                                 const struct answer_source *source);

// The outcome, for the pushes that wait for it, of a failed request for Google's access token.
struct notify_answer answer_read_google(const struct answer_source *source);

// An outcome without a response.
struct notify_answer answer_make(enum notify_outcome outcome, const char *reason);
