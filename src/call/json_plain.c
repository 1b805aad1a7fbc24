// SPDX-License-Identifier: Apache-2.0
// The fast path for typical bodies: an object whose values are all strings without escapes. Such a
// text needs no decoding, so it is split in place, in a tenth of jansson's time.
#include "json_plain.h"

#include "base/text.h"

#include <string.h>

enum { MEMBERS_MAX = 16 };

struct member {
    char *name;
    char *name_end;
    char *text;
    char *text_end;
};

static char *blanks_skip(char *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')
        at++;
    return at;
}

// The closing quote of the string that begins at `quote`; NULL if there is none or the string needs
// decoding.
static char *string_close(char *quote)
{
    bool ascii = true;
    char *at = quote + 1;
    if (*quote != '"')
        return NULL;
    for (; *at != '"'; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte < 0x20 || byte == '\\') // includes the final NUL
            return NULL;
        ascii = ascii && byte < 0x80;
    }
    return ascii || text_is_utf8(quote + 1, (size_t)(at - quote - 1)) ? at : NULL;
}

// Parses `"name": "text"` and returns what follows; NULL if malformed.
static char *member_read(char *at, struct member *ret_member)
{
    char *name_end = string_close(at);
    if (!name_end)
        return NULL;
    char *colon = blanks_skip(name_end + 1);
    if (*colon != ':')
        return NULL;
    char *quote = blanks_skip(colon + 1);
    char *text_end = string_close(quote);
    if (!text_end)
        return NULL;
    *ret_member = (struct member){at + 1, name_end, quote + 1, text_end};
    return blanks_skip(text_end + 1);
}

static bool is_same_name(const struct member *a, const struct member *b)
{
    size_t length = (size_t)(a->name_end - a->name);
    return length == (size_t)(b->name_end - b->name) && memcmp(a->name, b->name, length) == 0;
}

static bool is_repeated(const struct member *members, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_same_name(&members[i], &members[count]))
            return true;
    return false;
}

// The number of members; 0 if the body is not of the typical form.
static size_t members_read(char *text, const char *end, struct member *ret_members)
{
    char *at = blanks_skip(text);
    size_t count = 0;
    if (*at != '{')
        return 0;
    do {
        if (count == MEMBERS_MAX)
            return 0;
        at = member_read(blanks_skip(at + 1), &ret_members[count]);
        if (!at || is_repeated(ret_members, count))
            return 0;
        count++;
    } while (*at == ',');
    return *at == '}' && blanks_skip(at + 1) == end ? count : 0;
}

int json_plain_add(struct arguments *arguments, char *text, size_t length)
{
    struct member members[MEMBERS_MAX];
    size_t count = members_read(text, text + length, members);
    for (size_t i = 0; i < count; i++) {
        *members[i].name_end = '\0';
        *members[i].text_end = '\0';
        struct argument argument = {.name = members[i].name,
                                    .text = members[i].text,
                                    .length = (size_t)(members[i].text_end - members[i].text),
                                    .is_text = true};
        int r = arguments_add(arguments, &argument);
        if (r < 0)
            return r;
    }
    return count > 0;
}
