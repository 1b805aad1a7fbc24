// SPDX-License-Identifier: Apache-2.0
// Checks of text against a slow decoder; text as a JSON string; Latin-1 as UTF-8.
#include "../../src/call/charset.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "fuzz.h"

// The code point at `text` and its length; 0 when there is none.
static size_t decode(const uint8_t *text, size_t length, uint32_t *ret_point)
{
    static const uint32_t least[] = {0, 1, 0x80, 0x800, 0x10000};
    size_t needed = text[0] < 0x80             ? 1
                    : (text[0] & 0xe0) == 0xc0 ? 2
                    : (text[0] & 0xf0) == 0xe0 ? 3
                    : (text[0] & 0xf8) == 0xf0 ? 4
                                               : 0;
    if (needed == 0 || needed > length)
        return 0;
    uint32_t point = needed == 1 ? text[0] : text[0] & (0xffU >> (needed + 1));
    for (size_t i = 1; i < needed; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (text[i] & 0x3f);
    }
    if (point < least[needed] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
        return 0;
    *ret_point = point;
    return needed;
}

// Whether all of it is UTF-8, and how many code points.
static bool decode_all(const uint8_t *text, size_t length, size_t *ret_count)
{
    uint32_t point;
    *ret_count = 0;
    for (size_t at = 0; at < length; (*ret_count)++) {
        size_t step = decode(text + at, length - at, &point);
        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

static void json_check(const char *text, size_t size)
{
    struct buffer out;
    buffer_init(&out, 1 << 24);
    struct json_writer w = json_writer_to(&out);
    json_string_n(&w, text, size);
    assert(!buffer_failed(&out));
    CLEANUP_JSON json_t *value = json_loadb(out.data, out.length, JSON_DECODE_ANY, NULL);
    assert(json_is_string(value) && json_string_length(value) == size);
    assert(memcmp(json_string_value(value), text, size) == 0);
    buffer_done(&out);
}

static void widened_check(const char *text, size_t size, bool is_form)
{
    struct buffer out;
    size_t count;
    buffer_init(&out, 2 * size + 1);
    charset_widen(text, size, is_form, &out);
    assert(!buffer_failed(&out));
    // A form says some of its bytes in hex digits: a NUL may be left of neither.
    if (size == 0 || !memchr(text, '\0', size))
        assert(decode_all((const uint8_t *)out.data, out.length, &count));
    buffer_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    size_t count;
    bool is_utf8 = decode_all(data, size, &count);
    assert(text_is_utf8(text, size) == is_utf8);
    if (is_utf8) {
        assert(text_code_points(text, size) == count);
        size_t prefix = text_prefix_length(text, size, count / 2), found;
        assert(decode_all(data, prefix, &found) && found == count / 2);
        assert(text_prefix_length(text, size, count) == size);
        json_check(text, size);
    }
    widened_check(text, size, false);
    widened_check(text, size, true);
    char *type = fuzz_text(data, size);
    (void)charset_of(type);
    free(type);
    return 0;
}
