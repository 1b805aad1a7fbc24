// SPDX-License-Identifier: Apache-2.0
// Parses JSON from peers within limits of depth and number of values.
#include "base/json.h"

#include "base/error.h"

#include <stdbool.h>
#include <string.h>

// The byte after the string that begins at `quote`.
static const char *string_skip(const char *quote, const char *end)
{
    const char *at = quote + 1;

    while ((at = memchr(at, '"', (size_t)(end - at)))) {
        const char *before = at++;
        while (before[-1] == '\\')
            before--;
        if ((at - 1 - before) % 2 == 0)
            return at;
    }
    return end;
}

// The byte after a number or literal.
static const char *word_skip(const char *at, const char *end)
{
    while (at < end && !memchr(" \t\r\n,:[]{}\"", *at, 11))
        at++;
    return at;
}

// Looks only at brackets, quotes and words. Invalid JSON gets some size too, but never a smaller
// one than its longest valid beginning.
struct json_size json_measure(const char *text, size_t length)
{
    struct json_size size = {0};
    const char *end = text + length;
    bool after_string = false;
    int depth = 0;

    for (const char *at = text; at < end;) {
        switch (*at) {
        case '"':
            size.values++;
            after_string = true;
            at = string_skip(at, end);
            continue;
        case '{':
        case '[':
            size.values++;
            if (++depth > size.depth)
                size.depth = depth;
            break;
        case '}':
        case ']':
            depth--;
            break;
        case ':': // the preceding string was a member name, not a value
            size.values -= after_string;
            break;
        case ' ':
        case '\t':
        case '\r':
        case '\n':
            at++;
            continue;
        case ',':
            break;
        default:
            size.values++;
            after_string = false;
            at = word_skip(at, end);
            continue;
        }
        after_string = false;
        at++;
    }
    return size;
}

int json_read(const char *text, size_t length, int depth_max, int64_t values_max,
              json_t **ret_value)
{
    struct json_size size = json_measure(text, length);

    if (size.depth > depth_max)
        return -ERROR_INVALID_JSON;
    if (size.values > values_max)
        return -ERROR_REQUEST_TOO_LARGE;
    json_t *value = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    if (!value)
        return -ERROR_INVALID_JSON;
    *ret_value = value;
    return 0;
}
