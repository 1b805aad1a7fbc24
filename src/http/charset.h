// SPDX-License-Identifier: Apache-2.0
// The charset that a content type names: UTF-8, or the older ISO 8859-1, which is made UTF-8 here.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stddef.h>

enum charset { CHARSET_UTF_8, CHARSET_LATIN_1, CHARSET_UNKNOWN };

// UTF-8 when `content_type` names none.
enum charset charset_of(const char *content_type);

// Appends `text` of ISO 8859-1 as UTF-8. In a form the bytes behind '%' are widened, too.
void charset_widen(const char *text, size_t length, bool is_form, struct buffer *out);
