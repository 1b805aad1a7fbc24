// SPDX-License-Identifier: Apache-2.0
// The charset named by a content type: UTF-8, or the older ISO 8859-1, which is converted to UTF-8.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stddef.h>

enum charset { CHARSET_UTF_8, CHARSET_LATIN_1, CHARSET_UNKNOWN };

// UTF-8 if `content_type` names no charset.
enum charset charset_of(const char *content_type);

// Appends ISO 8859-1 `text` as UTF-8. In a form, converts percent-encoded bytes too.
void charset_widen(const char *text, size_t length, bool is_form, struct buffer *out);
