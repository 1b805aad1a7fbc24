// SPDX-License-Identifier: Apache-2.0
// What can be a name; finds "@name" in a text and replaces it with a user mention.
#include "chat/names.h"

#include "base/error.h"
#include "base/text.h"
#include "base/unicode.h"
#include "chat/mentions.h"

#include <ctype.h>
#include <string.h>

static bool is_punctuation(char c)
{
    return c == '.' || c == '-' || c == '_';
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
    size_t end = 0;
    size_t step;

    for (size_t i = 0; i < length; i += step) {
        enum unicode_kind kind = unicode_kind_of(name + i, length - i, &step);
        if (kind < UNICODE_INVISIBLE)
            end = i + step;
        else if (!is_punctuation(name[i]))
            break;
    }
    return end;
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

// The kinds of characters in a name, one bit for each; 0: another character than those of names.
static unsigned kinds_in(const char *name, size_t length, const char *punctuation)
{
    unsigned kinds = 0;
    size_t step;

    for (size_t i = 0; i < length; i += step) {
        enum unicode_kind kind = unicode_kind_of(name + i, length - i, &step);
        if (kind > UNICODE_MARK && !(name[i] != '\0' && strchr(punctuation, name[i])))
            return 0;
        kinds |= 1U << kind;
    }
    return kinds;
}

static bool has_letter_or_number(unsigned kinds)
{
    return (kinds & (1U << UNICODE_LETTER | 1U << UNICODE_CAPITAL | 1U << UNICODE_NUMBER)) != 0;
}

int names_refuse_channel(const char *name, size_t length)
{
    unsigned kinds = kinds_in(name, length, "-_");

    if (text_code_points(name, length) > NAMES_MAX_CODE_POINTS)
        return -ERROR_INVALID_NAME_MAXLENGTH;
    if (kinds == 0 || (kinds & 1U << UNICODE_CAPITAL) != 0)
        return -ERROR_INVALID_NAME_SPECIALS;
    return has_letter_or_number(kinds) ? 0 : -ERROR_INVALID_NAME_PUNCTUATION;
}

bool names_can_be_user(const char *name, size_t length)
{
    CLEANUP_FREE char *folded = unicode_fold(name, length);

    return folded && !mentions_everybody(folded, strlen(folded)) &&
           text_code_points(name, length) <= NAMES_MAX_CODE_POINTS &&
           has_letter_or_number(kinds_in(name, length, ".-_"));
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
