// SPDX-License-Identifier: Apache-2.0
// Validates UTF-8 and counts code points.
#include "base/text.h"

#include <stdint.h>
#include <string.h>

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

// Whether all eight bytes are within 0x01-0x7f.
static bool word_is_ascii(const char *text)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t word;
    memcpy(&word, text, sizeof word);
    return ((word | (word - ones)) & (ones * 0x80)) == 0;
}

// The length of the valid UTF-8 sequence at `text`; 0 if there is none. The narrower ranges of the
// second byte exclude overlong forms (E0, F0), surrogates (ED) and code points beyond U+10FFFF
// (F4).
static size_t sequence_length(const unsigned char *text, size_t length)
{
    unsigned char lead = text[0];
    if (lead < 0x80)
        return lead != 0;
    size_t needed = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || length < needed)
        return 0;
    unsigned char least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned char most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (text[1] < least || text[1] > most)
        return 0;
    for (size_t i = 2; i < needed; i++)
        if (!is_continuation(text[i]))
            return 0;
    return needed;
}

bool text_is_utf8(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        if (length - at >= 8 && word_is_ascii(text + at)) {
            at += 8;
            continue;
        }
        size_t step = sequence_length((const unsigned char *)text + at, length - at);
        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

size_t text_code_points(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += !is_continuation((unsigned char)text[i]);
    return count;
}

size_t text_prefix_length(const char *text, size_t length, size_t code_points_max)
{
    // Each code point takes at least one byte.
    if (length <= code_points_max)
        return length;
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        if (!is_continuation((unsigned char)text[i]) && ++count > code_points_max)
            return i;
    return length;
}
