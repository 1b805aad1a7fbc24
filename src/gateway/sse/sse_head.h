// SPDX-License-Identifier: Apache-2.0
// The request of an event stream. Pure text processing: no connection, no clock, no state.
#pragma once

#include "../position.h"

#include "login/jwt.h"

#include <stdbool.h>

struct http_head;

enum { SSE_CREDENTIAL_SIZE = JWT_BYTES_MAX + 1, SSE_ORIGIN_SIZE = 256 };

struct sse_head {
    bool is_preflight;                    // OPTIONS: nothing else matters
    bool is_ticket;                       // the credential is a ticket, not a token
    bool resumes;                         // Last-Event-ID or since= was sent
    bool since_is_bad;                    // it is not a position
    struct place place;                   // otherwise: where to resume
    char credential[SSE_CREDENTIAL_SIZE]; // "": none
    char origin[SSE_ORIGIN_SIZE];         // of the requesting page; "": none
};

// Returns the HTTP status to refuse the request with, or 0.
int sse_head_read(const struct http_head *head, struct sse_head *ret_head);
