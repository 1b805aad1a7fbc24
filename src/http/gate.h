// SPDX-License-Identifier: Apache-2.0
// What a request's head says, and whether it may pass. libmicrohttpd 0.9.75 lets through what lets
// an attacker behind a proxy smuggle requests; all of it is refused here, in the first call of the
// access handler.
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

// The request line as it came. `target` is not decoded; the memory is libmicrohttpd's.
struct gate_line {
    const char *verb;
    const char *target_end; // where the target's NUL was when the line was read
    const char *version;
};

// Headers by their meaning, NULL when absent; valid while libmicrohttpd has the request.
struct gate_head {
    const char *host;
    const char *authorization;
    const char *content_type;
    const char *content_length;
    const char *transfer_encoding;
    const char *request_id;
    const char *idempotency_key;
    const char *errors;
    const char *origin;
};

// Whether the target of a request line may pass: a path, without blanks and control characters.
bool gate_target_is_fine(const char *target);

// Reads all headers. NULL when the request may pass, else the reason (static text) to refuse it
// with 400.
const char *gate_check(struct MHD_Connection *mhd, const struct gate_line *line,
                       struct gate_head *ret_head);
