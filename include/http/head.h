// SPDX-License-Identifier: Apache-2.0
// The one parser of request heads. It refuses what would let an attacker behind a proxy smuggle
// requests, much of which libmicrohttpd lets through.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// A parsed head. All texts lie in the text that was parsed; those of fields that did not come are
// NULL.
struct http_head {
    const char *verb;
    char *target; // not decoded
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
    const char *accept_encoding;
    const char *last_event_id;
    const char *upgrade;
    const char *websocket_version;
    const char *websocket_key;
    bool wants_upgrade; // a Connection header says so: several are one list
    int fields;         // how many there are
};

// Parses a whole head with its empty line, and cuts it into texts in place. NULL when the request
// may pass, else the reason (static text) to refuse it with 400; what was not reached is NULL then.
const char *head_parse(char *text, size_t length, struct http_head *ret_head);

// Whether a body is announced.
bool head_has_body(const struct http_head *head);
// Whether `list`, words with commas between them, holds `word` in any case of letters. NULL: no.
bool head_list_has(const char *list, const char *word);

// Moves the texts of a head whose text was copied from `from` to `to`.
void head_move(struct http_head *head, const char *from, char *to);

// How far a head has come.
struct head_progress {
    size_t line_length; // of the request line without its end; 0 until it is complete
    const char *target; // in it; NULL until then
    size_t target_length;
    size_t length; // of the whole head with its empty line; 0 until that has come
};

// Looks at the first `length` bytes of a request, before libmicrohttpd does: for what that answers
// itself, and badly (a malformed Content-Length: two status lines; a request line that is none:
// silence). NULL as long as they may begin a well-formed head, else the reason (static text) to
// refuse it.
const char *head_scan(const char *text, size_t length, struct head_progress *ret_progress);

// The same for the lines after the request line. *ret_length: theirs with the empty line, or 0
// until that has come.
const char *head_scan_fields(const char *text, size_t length, size_t *ret_length);
