// SPDX-License-Identifier: Apache-2.0
// Where JSON ends, by its brackets and strings alone. The input may be hostile.
#pragma once

#include <stddef.h>

// The length of the string at the start of `text`, both quotes included; 0 when it does not end or
// holds a control byte. `length` is at least 1, and text[0] a quote.
size_t frame_string_span(const char *text, size_t length);

// The length of the object at the start of `text`; 0 when there is none whose brackets and strings
// all close: then it can neither end early nor run on, whatever it says.
size_t frame_object_span(const char *text, size_t length);
