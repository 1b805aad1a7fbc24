// SPDX-License-Identifier: Apache-2.0
// Base64: encodes URL-safe without padding, decodes both alphabets.
#include "base/base64.h"

#include "base/error.h"

#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64_write_url(const void *data, size_t length, struct buffer *out)
{
    const uint8_t *bytes = data;

    for (size_t at = 0; at < length; at += 3) {
        size_t left = length - at;
        uint32_t group = (uint32_t)bytes[at] << 16;
        if (left > 1)
            group |= (uint32_t)bytes[at + 1] << 8;
        if (left > 2)
            group |= bytes[at + 2];
        for (size_t i = 0; i <= (left < 3 ? left : 3); i++)
            buffer_append_byte(out, alphabet[group >> (18 - 6 * i) & 63]);
    }
}

// The six bits of a character; -1 if it is in neither alphabet.
static int bits_of(char c)
{
    if (c == '+' || c == '/')
        return c == '+' ? 62 : 63;
    const char *found = c == '\0' ? NULL : strchr(alphabet, c);
    return found ? (int)(found - alphabet) : -1;
}

// The length without padding. 0 if the padding does not complete a group of four.
static size_t padding_drop(const char *text, size_t length)
{
    size_t bare = length;

    while (bare > 0 && length - bare < 2 && text[bare - 1] == '=')
        bare--;
    return bare == length || length % 4 == 0 ? bare : 0;
}

int base64_read(const char *text, size_t length, uint8_t *ret_data, size_t size)
{
    size_t bare = padding_drop(text, length);
    size_t count = bare * 6 / 8;
    uint32_t group = 0;
    size_t done = 0;

    if ((bare == 0 && length > 0) || bare % 4 == 1 || count > size)
        return -ERROR_INVALID_ARGUMENTS;
    for (size_t i = 0; i < bare; i++) {
        int bits = bits_of(text[i]);
        if (bits < 0)
            return -ERROR_INVALID_ARGUMENTS;
        group = group << 6 | (uint32_t)bits;
        if (i % 4 != 0)
            ret_data[done++] = (uint8_t)(group >> (6 - i % 4 * 2));
    }
    bool is_left_over = (bare % 4 == 2 && (group & 15) != 0) || (bare % 4 == 3 && (group & 3) != 0);
    return is_left_over ? -ERROR_INVALID_ARGUMENTS : (int)count;
}
