// SPDX-License-Identifier: Apache-2.0
// Parses the versioned tokens that clients send back: "<letter><version>.<number>…".
#include "base/versioned.h"

#include "base/error.h"
#include "base/id.h"

#include <stdbool.h>
#include <string.h>

enum { LENGTH_MAX = 1024, VERSION_MAX = 999 };

// Digits with single dots between them.
static bool is_dotted(const char *text, const char *end)
{
    bool after_digit = false;
    for (; text < end; text++) {
        bool is_digit = *text >= '0' && *text <= '9';
        if (!is_digit && (*text != '.' || !after_digit))
            return false;
        after_digit = is_digit;
    }
    return after_digit;
}

// Consumes the number before the next dot, and the dot.
static int number_take(const char **text, const char *end, int64_t max, int64_t *ret_number)
{
    const char *dot = *text < end ? memchr(*text, '.', (size_t)(end - *text)) : NULL;
    const char *stop = dot ? dot : end;
    int r = integer_parse(*text, (size_t)(stop - *text), 0, max, ret_number);
    *text = dot ? dot + 1 : end;
    return r;
}

int versioned_parse(const char *text, size_t length, char letter, int64_t *ret_numbers, int count)
{
    const char *end = text + length;
    int64_t version;
    if (length < 2 || length > LENGTH_MAX || *text++ != letter || !is_dotted(text, end) ||
        number_take(&text, end, VERSION_MAX, &version) < 0 || version < 1 || text == end)
        return -ERROR_INVALID_ARGUMENTS;
    for (int i = 0; i < count && version == 1; i++)
        if (number_take(&text, end, INT64_MAX, &ret_numbers[i]) < 0)
            return -ERROR_INVALID_ARGUMENTS;
    return (int)version;
}
