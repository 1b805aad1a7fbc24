// SPDX-License-Identifier: Apache-2.0
// Characters by their Unicode properties, from utf8proc.
#include "base/unicode.h"

#include "base/text.h"

#include <utf8proc.h>

enum {
    DELETE = 0x7f,
    ZERO_WIDTH_NON_JOINER = 0x200c,
    ZERO_WIDTH_JOINER = 0x200d,
    BRAILLE_BLANK = 0x2800, // a symbol
    NULL_NOTEHEAD = 0x1d159 // likewise
};

static enum unicode_kind kind_of_category(int category)
{
    switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
        return UNICODE_CAPITAL;
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return UNICODE_LETTER;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return UNICODE_MARK;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return UNICODE_NUMBER;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
        return UNICODE_INVISIBLE;
    default:
        return UNICODE_OTHER;
    }
}

static enum unicode_kind kind_of(utf8proc_int32_t point)
{
    const utf8proc_property_t *property = utf8proc_get_property(point);

    if (point == ZERO_WIDTH_NON_JOINER || point == ZERO_WIDTH_JOINER)
        return UNICODE_JOINER;
    // "Ignorable" are also letters and marks that show nothing, such as a filler of Hangul.
    if (property->ignorable || point == BRAILLE_BLANK || point == NULL_NOTEHEAD)
        return UNICODE_INVISIBLE;
    return kind_of_category(property->category);
}

// The code point that `text` begins with; -1: none. The length is 1 then.
static utf8proc_int32_t point_read(const char *text, size_t length, size_t *ret_length)
{
    utf8proc_int32_t point;
    utf8proc_ssize_t step =
        utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)length, &point);

    *ret_length = step > 0 ? (size_t)step : 1;
    return step > 0 ? point : -1;
}

enum unicode_kind unicode_kind_of(const char *text, size_t length, size_t *ret_length)
{
    utf8proc_int32_t point = point_read(text, length, ret_length);

    return point < 0 ? UNICODE_OTHER : kind_of(point);
}

bool unicode_is_blank(const char *text, size_t length)
{
    size_t step;

    if (length > 0 && text[0] > ' ' && text[0] != DELETE) // as nearly every text begins
        return false;
    for (size_t at = 0; at < length; at += step) {
        enum unicode_kind kind = unicode_kind_of(text + at, length - at, &step);
        if (kind != UNICODE_INVISIBLE && kind != UNICODE_JOINER)
            return false;
    }
    return true;
}

static bool is_printable_ascii(char c)
{
    return c >= ' ' && c <= '~';
}

size_t unicode_prefix_length(const char *text, size_t length, size_t code_points_max)
{
    size_t cut = text_prefix_length(text, length, code_points_max);
    utf8proc_int32_t previous = -1;
    utf8proc_int32_t state = 0;
    size_t end = 0; // of the last whole cluster
    size_t step;

    if (cut == 0 || cut == length ||
        (is_printable_ascii(text[cut - 1]) && is_printable_ascii(text[cut])))
        return cut;
    for (size_t at = 0; at <= cut; at += step) {
        utf8proc_int32_t point = point_read(text + at, length - at, &step);
        if (at > 0 && utf8proc_grapheme_break_stateful(previous, point, &state))
            end = at;
        previous = point;
    }
    return end > 0 ? end : cut;
}

char *unicode_fold(const char *text, size_t length)
{
    utf8proc_uint8_t *folded = NULL;
    utf8proc_ssize_t r = utf8proc_map(
        (const utf8proc_uint8_t *)text, (utf8proc_ssize_t)length, &folded,
        UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE);

    return r < 0 ? NULL : (char *)folded;
}
