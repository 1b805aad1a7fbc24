// SPDX-License-Identifier: Apache-2.0
// Finds the bytes of an uploaded file in a request's body, a piece at a time: the first part with a
// file name of a multipart/form-data body, and the whole of any other. Holds no more than a part's
// headers.
#pragma once

#include "base/cleanup.h"
#include "call/streaming.h"

#include <stdbool.h>
#include <stddef.h>

enum { UPLOAD_BOUNDARY_MAX = 70, UPLOAD_HEADERS_MAX = 4096 };

enum upload_state { UPLOAD_RAW, UPLOAD_DATA, UPLOAD_DELIMITER, UPLOAD_HEADERS, UPLOAD_END };

struct upload_body {
    struct body_sink *sink; // where the file's bytes go
    enum upload_state state;
    char delimiter[UPLOAD_BOUNDARY_MAX + 5]; // "\r\n--" and the boundary
    size_t delimiter_length;
    size_t matched;     // bytes of the delimiter seen; in UPLOAD_DELIMITER, bytes behind it
    char after;         // the first of these
    bool is_file;       // the current part is the file
    bool has_file;      // it was found
    size_t header_size; // of the current part
    char headers[UPLOAD_HEADERS_MAX];
};

// -ERROR_INVALID_FORM_DATA: multipart without a boundary. `content_type` NULL: none.
NODISCARD int upload_body_init(struct upload_body *body, const char *content_type,
                               struct body_sink *sink);
// Takes a piece. -ERROR_INVALID_FORM_DATA, or what the sink returned.
NODISCARD int upload_body_add(struct upload_body *body, const char *data, size_t size);
// Whether the body may end here: the file is complete.
bool upload_body_is_complete(const struct upload_body *body);
