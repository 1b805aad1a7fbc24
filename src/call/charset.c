// SPDX-License-Identifier: Apache-2.0
// Detects the charset of a body, and converts Latin-1 to UTF-8.
#include "charset.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum charset charset_of(const char *content_type)
{
    static const char parameter[] = "charset=";
    const char *name = content_type ? strcasestr(content_type, parameter) : NULL;

    if (!name)
        return CHARSET_UTF_8;
    name += sizeof parameter - 1;
    name += *name == '"';
    size_t length = strcspn(name, "\"; \t");
    if (length == 5 && strncasecmp(name, "utf-8", length) == 0)
        return CHARSET_UTF_8;
    if (length == 10 && strncasecmp(name, "iso-8859-1", length) == 0)
        return CHARSET_LATIN_1;
    return CHARSET_UNKNOWN;
}

static void byte_widen(unsigned char byte, struct buffer *out)
{
    buffer_append_byte(out, (char)(0xC0 | byte >> 6));
    buffer_append_byte(out, (char)(0x80 | (byte & 0x3F)));
}

// The byte encoded by two hex digits, or -1.
static int coded_byte(const char *digits)
{
    const char text[3] = {digits[0], digits[1], '\0'};

    if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]))
        return -1;
    return (int)strtol(text, NULL, 16);
}

void charset_widen(const char *text, size_t length, bool is_form, struct buffer *out)
{
    for (size_t i = 0; i < length; i++) {
        bool is_coded = is_form && text[i] == '%' && length - i > 2;
        int coded = is_coded ? coded_byte(text + i + 1) : -1;
        if (coded >= 0x80) {
            byte_widen((unsigned char)coded, out);
            i += 2;
        } else if ((unsigned char)text[i] >= 0x80) {
            byte_widen((unsigned char)text[i], out);
        } else {
            buffer_append_byte(out, text[i]);
        }
    }
}
