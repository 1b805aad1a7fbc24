// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include "base/error.h"

#include <stdbool.h>

// Whether brackets nest at most `depth_max` deep, by looking at brackets outside of strings alone:
// before a parser that recurses gets to see them.
static bool depth_is_within(const char *text, size_t length, int depth_max)
{
    bool in_string = false;
    int depth = 0;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > depth_max)
                return false;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return true;
}

int json_read(const char *text, size_t length, int depth_max, json_t **ret_value)
{
    if (!depth_is_within(text, length, depth_max))
        return -ERROR_INVALID_JSON;
    json_t *value = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    if (!value)
        return -ERROR_INVALID_JSON;
    *ret_value = value;
    return 0;
}
