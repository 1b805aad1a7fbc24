// SPDX-License-Identifier: Apache-2.0
// Finds the end of a JSON string or object without parsing it.
#include "event_frame.h"

enum { DEPTH_MAX = 80 };

size_t frame_string_span(const char *text, size_t length)
{
    for (size_t i = 1; i < length; i++) {
        if (text[i] == '"')
            return i + 1;
        if ((unsigned char)text[i] < 0x20)
            return 0;
        if (text[i] == '\\')
            i++;
    }
    return 0;
}

size_t frame_object_span(const char *text, size_t length)
{
    char open[DEPTH_MAX];
    size_t depth = 0;
    if (length < 2 || text[0] != '{')
        return 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"') {
            size_t string = frame_string_span(text + i, length - i);
            if (string == 0)
                return 0;
            i += string - 1;
        } else if (text[i] == '{' || text[i] == '[') {
            if (depth == sizeof open)
                return 0;
            open[depth++] = text[i] == '{' ? '}' : ']';
        } else if (text[i] == '}' || text[i] == ']') {
            if (open[--depth] != text[i])
                return 0;
            if (depth == 0)
                return i + 1;
        }
    }
    return 0;
}
