// SPDX-License-Identifier: Apache-2.0
// The only parser of request heads. It rejects everything that would let an attacker behind a proxy
// smuggle requests.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// A parsed head. All strings point into the parsed text. Missing fields are NULL.
struct http_head {
    const char *verb;
    char *target; // not percent-decoded
    const char *version;
    const char *host;
    const char *authorization;
    const char *content_type;
    const char *content_length; // 1 to 18 digits
    const char *transfer_encoding;
    const char *request_id;
    const char *idempotency_key;
    const char *errors;
    const char *origin;
    const char *expect;
    const char *if_none_match;
    const char *range;
    const char *accept_encoding;
    const char *last_event_id;
    const char *upgrade;
    const char *websocket_version;
    const char *websocket_key;
    bool wants_upgrade; // requested by a Connection header; several form one list
    bool wants_close;   // likewise
    bool wants_keep;    // likewise: keep-alive
    int fields;         // number of header fields
};

// Parses a complete head, including its empty line, by cutting it into strings in place. Returns
// NULL if the request is acceptable, otherwise the reason (static text) to reject it with 400;
// fields not reached are then NULL.
const char *head_parse(char *text, size_t length, struct http_head *ret_head);

bool head_is_1_0(const struct http_head *head);
// Whether a body is announced.
bool head_has_body(const struct http_head *head);
// Whether the comma-separated `list` contains `word`, ignoring case. A NULL list contains nothing.
bool head_list_has(const char *list, const char *word);

// How much of a head has arrived.
struct head_progress {
    size_t line_length; // of the request line without its line end; 0 until it is complete
    const char *target; // in the request line; NULL until it is complete
    size_t target_length;
    size_t length; // of the whole head with its empty line; 0 until it is complete
};

// Checks the first `length` bytes of a request, so that a peer that speaks no HTTP, or makes an
// error, is told so at once. Returns NULL while the bytes may start a well-formed head, otherwise
// the reason (static text) to reject it.
const char *head_scan(const char *text, size_t length, struct head_progress *ret_progress);
