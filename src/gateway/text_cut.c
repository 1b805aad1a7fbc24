// SPDX-License-Identifier: Apache-2.0
// Splits the text of a request's head in place.
#include "text_cut.h"

#include <string.h>
#include <strings.h>

bool text_is(struct text text, const char *word)
{
    return text.length == strlen(word) && strncasecmp(text.data, word, text.length) == 0;
}

struct text text_trim(struct text text)
{
    while (text.length > 0 && (*text.data == ' ' || *text.data == '\t')) {
        text.data++;
        text.length--;
    }
    while (text.length > 0 &&
           (text.data[text.length - 1] == ' ' || text.data[text.length - 1] == '\t'))
        text.length--;
    return text;
}

struct text text_of(const char *value)
{
    return value ? text_trim((struct text){value, strlen(value)}) : (struct text){"", 0};
}

struct text text_take(struct text *rest, const char *separator)
{
    size_t width = strlen(separator);
    struct text taken = *rest;
    const char *end = rest->length > 0 ? memmem(rest->data, rest->length, separator, width) : NULL;
    if (!end) {
        *rest = (struct text){rest->data + rest->length, 0};
        return taken;
    }
    taken.length = (size_t)(end - rest->data);
    *rest = (struct text){end + width, rest->length - taken.length - width};
    return taken;
}
