// SPDX-License-Identifier: Apache-2.0
// Finds where JSON ends, by its brackets and strings alone. The input may be hostile.
#pragma once

#include <stddef.h>

// The length of the string at the start of `text`, including both quotes; 0 if it is unterminated
// or contains a control byte. `length` is at least 1, and text[0] is a quote.
size_t frame_string_span(const char *text, size_t length);

// The length of the object at the start of `text`; 0 unless all its brackets and strings are
// closed. So a hostile object can neither end early nor run on.
size_t frame_object_span(const char *text, size_t length);
