// SPDX-License-Identifier: Apache-2.0
// A strict look at a request's head before libmicrohttpd parses it: for what libmicrohttpd answers
// itself, and badly (a malformed Content-Length: two status lines; a request line that is none:
// silence). The rest is the gate's.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// How far a head has come.
struct head_progress {
    size_t line_length; // of the request line without its end; 0 until it is complete
    bool complete;      // with the empty line
};

// Looks at the first `length` bytes of a request. NULL as long as they may begin a well-formed
// head, else the reason (static text) to refuse it.
const char *head_scan(const char *text, size_t length, struct head_progress *ret_progress);

// The same for the lines after the request line.
const char *head_scan_fields(const char *text, size_t length, bool *ret_complete);
