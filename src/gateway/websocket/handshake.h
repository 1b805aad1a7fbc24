// SPDX-License-Identifier: Apache-2.0
// The opening handshake of RFC 6455. Pure text processing: no connection, no clock, no state.
#pragma once

#include "../position.h"

#include <stdbool.h>

struct http_head;

enum { HANDSHAKE_TICKET_SIZE = 128, HANDSHAKE_REPLY_SIZE = 256 };

struct handshake {
    char ticket[HANDSHAKE_TICKET_SIZE];
    bool is_app_socket;               // the path is /link/TICKET
    bool resumes;                     // ?since=… was sent
    struct place place;               // where to resume
    char reply[HANDSHAKE_REPLY_SIZE]; // 101 Switching Protocols, with the accept key
};

// NULL: a valid upgrade request, and `ret_handshake` is filled. Otherwise returns the HTTP reply to
// refuse it with (static text).
const char *handshake_read(const struct http_head *head, struct handshake *ret_handshake);

extern const char handshake_bad_request[];
extern const char handshake_unavailable[];
