// SPDX-License-Identifier: Apache-2.0
// Reads the setting of rate limits by method.
#include "limits.h"
#include "methods.h"

#include <string.h>

enum { LIMIT_MAX = 1000000000, NAME_SIZE = 64 };

// Parses one "method=number" of `length` bytes.
static int limit_read(const char *text, size_t length, struct limits *limits)
{
    char name[NAME_SIZE];
    const char *equals = memchr(text, '=', length);
    size_t name_length = equals ? (size_t)(equals - text) : 0;

    if (!equals || name_length >= sizeof name)
        return -ERROR_INVALID_ARGUMENTS;
    memcpy(name, text, name_length);
    name[name_length] = '\0';
    const struct method *method = method_find(name);
    if (!method)
        return -ERROR_INVALID_ARGUMENTS;
    return integer_parse(equals + 1, length - name_length - 1, 0, LIMIT_MAX,
                         &limits->methods[method_number(method)]);
}

int limits_read(const char *text, int64_t others, struct limits *ret_limits)
{
    struct limits limits = {0};

    for (size_t i = 0; i < METHODS_MAX; i++)
        limits.methods[i] = others;
    while (text[0] != '\0') {
        size_t length = strcspn(text, ",");
        int r = limit_read(text, length, &limits);
        if (r < 0)
            return r;
        text += length + (text[length] == ',');
    }
    *ret_limits = limits;
    return 0;
}

int api_limits_check(const char *text)
{
    struct limits limits;

    return limits_read(text, 0, &limits);
}
