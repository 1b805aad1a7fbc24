// SPDX-License-Identifier: Apache-2.0
// Finds "@name" in a text and replaces it with a user mention.
#include "chat/names.h"

#include <ctype.h>
#include <string.h>

static bool is_punctuation(char c)
{
    return c == '.' || c == '-' || c == '_';
}

static bool is_part(char c)
{
    return (unsigned char)c >= 0x80 || isalnum((unsigned char)c) || is_punctuation(c);
}

// Whether an '@' after this character belongs to a mail address.
static bool is_glued(char c)
{
    return isalnum((unsigned char)c) || is_punctuation(c) || c == '+' || c == '@';
}

// Length of the "<…>" that begins here; 1 if it is not closed.
static size_t sequence_length(const char *text, size_t length)
{
    size_t i = 1;

    while (i < length && text[i] != '<' && text[i] != '>')
        i++;
    return i < length && text[i] == '>' ? i + 1 : 1;
}

static size_t name_length(const char *name, size_t length)
{
    size_t i = 0;

    while (i < length && is_part(name[i]))
        i++;
    while (i > 0 && is_punctuation(name[i - 1]))
        i--;
    return i;
}

const char *names_next(const char *text, size_t length, size_t *offset, size_t *ret_length)
{
    for (size_t i = *offset; i < length; i++) {
        if (text[i] == '<')
            i += sequence_length(text + i, length - i) - 1;
        if (text[i] != '@' || (i > 0 && is_glued(text[i - 1])))
            continue;
        size_t found = name_length(text + i + 1, length - i - 1);
        if (found == 0)
            continue;
        *offset = i + 1 + found;
        *ret_length = found;
        return text + i + 1;
    }
    *offset = length;
    return NULL;
}

static const char *everybody_of(const char *name, size_t length)
{
    static const char *const names[] = {"channel", "here", "everyone"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return names[i];
    return NULL;
}

void names_link(const char *text, size_t length, name_find_fn *fn, const void *arg,
                struct buffer *out)
{
    size_t offset = 0;
    size_t written = 0;
    size_t found;
    const char *name;

    while ((name = names_next(text, length, &offset, &found))) {
        const char *everybody = everybody_of(name, found);
        const char *user_id = everybody ? NULL : fn(arg, name, found);
        if (!everybody && !user_id)
            continue;
        size_t at = (size_t)(name - text) - 1;
        buffer_append(out, text + written, at - written);
        buffer_append_text(out, everybody ? "<!" : "<@");
        buffer_append_text(out, everybody ? everybody : user_id);
        buffer_append_byte(out, '>');
        written = offset;
    }
    buffer_append(out, text + written, length - written);
}
