// SPDX-License-Identifier: Apache-2.0
// Interprets providers' responses. Any thread.
#pragma once

#include "notify/notify.h"
#include "outbound/outbound.h"

// The outcome of `push`.
struct notify_answer answer_read(const struct notify_push *push,
                                 const struct outbound_answer *source);

// The outcome, for the pushes that wait for it, of a failed request for Google's access token.
struct notify_answer answer_read_google(const struct outbound_answer *source);

// An outcome without a response.
struct notify_answer answer_make(enum notify_outcome outcome, const char *reason);
