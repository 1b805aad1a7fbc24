// SPDX-License-Identifier: Apache-2.0
// Parses application/x-www-form-urlencoded text: queries and bodies.
#include "call/request_arguments.h"

#include "base/error.h"

#include <string.h>

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

// Decodes `text` up to `end` in place and appends a NUL, for which *end must be writable. A '%' not
// followed by two hex digits stands for itself: people type "100% sure" into curl.
static size_t form_decode(char *text, const char *end)
{
    char *out = text;
    for (const char *in = text; in < end; in++) {
        char byte = *in;
        if (byte == '+') {
            byte = ' ';
        } else if (byte == '%' && end - in > 2 && hex_value(in[1]) >= 0 && hex_value(in[2]) >= 0) {
            byte = (char)(hex_value(in[1]) * 16 + hex_value(in[2]));
            in += 2;
        }
        *out++ = byte;
    }
    *out = '\0';
    return (size_t)(out - text);
}

static int form_add_pair(struct arguments *arguments, char *text, char *end)
{
    char *equals = memchr(text, '=', (size_t)(end - text));
    char *value = equals ? equals + 1 : end;
    // The value first: the NUL after the name may overwrite the byte before the value.
    size_t length = form_decode(value, end);
    size_t name_length = form_decode(text, equals ? equals : end);
    struct argument argument = {
        .name = text, .text = equals ? value : "", .length = length, .is_text = true};
    if (name_length == 0 && length == 0)
        return 0;
    int r = arguments_check_text(arguments, &argument, name_length);
    return r < 0 ? r : arguments_add(arguments, &argument);
}

int arguments_add_form(struct arguments *arguments, char *text, size_t length)
{
    char *end = text + length;
    while (text < end) {
        char *pair_end = memchr(text, '&', (size_t)(end - text));
        if (!pair_end)
            pair_end = end;
        int r = form_add_pair(arguments, text, pair_end);
        if (r < 0)
            return r;
        text = pair_end + 1;
    }
    return 0;
}
