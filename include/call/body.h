// SPDX-License-Identifier: Apache-2.0
// The body of a call, as bytes of a content type, and how it becomes arguments.
#pragma once

#include "call/transport.h"

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

enum body_type { BODY_UNTYPED, BODY_UNKNOWN, BODY_FORM, BODY_JSON, BODY_MULTIPART };

struct body {
    struct buffer bytes;      // with room for one more byte than the body has
    const char *content_type; // not owned; NULL: none
    enum body_type type;
    size_t length; // of the text
    bool is_text;  // `bytes` is NUL-terminated UTF-8
    bool is_read;  // its arguments have been parsed
};

// Parses the query (writable; NULL: none) and, if the request has no token, as much of the body as
// is needed to find one.
NODISCARD int body_find_token(struct body *body, struct request *request, char *query);
// Parses the rest of the body if that is quick. *ret_done: so it was, and reading the arguments
// will be quick too. Otherwise call body_read().
NODISCARD int body_read_light(struct body *body, struct request *request, bool *ret_done);
// Parses the rest of the body and what is slow to read of its arguments. On any thread, while no
// other uses the request.
NODISCARD int body_read(struct body *body, struct request *request);
