// SPDX-License-Identifier: Apache-2.0
// The request of an event stream, as far as text goes: no connection, no clock, no state.
#pragma once

#include "../position.h"

#include <stdbool.h>

struct http_head;

enum { SSE_CREDENTIAL_SIZE = 260, SSE_ORIGIN_SIZE = 256 };

struct sse_head {
    bool is_preflight;                    // OPTIONS: nothing else matters
    bool is_ticket;                       // the credential is a ticket, not a token
    bool resumes;                         // Last-Event-ID, or since=, was sent
    bool since_is_bad;                    // and is none of ours
    struct place place;                   // else
    char credential[SSE_CREDENTIAL_SIZE]; // "" when none
    char origin[SSE_ORIGIN_SIZE];         // of the page that asks; "" when none
};

// The HTTP status to refuse the request with, or 0.
int sse_head_read(const struct http_head *head, struct sse_head *ret_head);
