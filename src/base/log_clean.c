// SPDX-License-Identifier: Apache-2.0
// Escapes text for the log and masks tokens in it.
#include "log_internal.h"

#include <ctype.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/text.h"

static bool is_token_byte(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '_';
}

// The length of a token prefix ("xoxb-", "xapp-") at the start of `text`; 0 if there is none.
static size_t token_prefix_length(const char *text, size_t length)
{
    if (length < 5 || text[0] != 'x' || text[4] != '-')
        return 0;
    if (memcmp(text, "xapp", 4) == 0)
        return 5;
    return text[1] == 'o' && text[2] == 'x' && text[3] >= 'a' && text[3] <= 'z' ? 5 : 0;
}

static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != 'x';
}

static size_t plain_run(const char *text, size_t length)
{
    size_t run = 0;
    while (run < length && is_plain(text[run]))
        run++;
    return run;
}

// The length of the UTF-8 sequence at the start of `text`; 0 if it is invalid or must not be
// logged.
static size_t shown_length(const char *text, size_t length)
{
    for (size_t n = 2; n <= 4 && n <= length; n++)
        if (text_is_utf8(text, n))
            return (unsigned char)text[0] == 0xc2 && (unsigned char)text[1] < 0xa0 ? 0 : n;
    return 0;
}

static void append_escaped(struct buffer *out, char c)
{
    buffer_append_format(out, "\\u%04x", (unsigned)c);
}

// Appends the character or token at the start of `text`. Returns the bytes of `text` consumed.
static size_t append_special(struct buffer *out, const char *text, size_t length)
{
    size_t prefix = token_prefix_length(text, length);
    if (prefix > 0) {
        buffer_append(out, text, prefix);
        buffer_append_text(out, "***");
        while (prefix < length && is_token_byte(text[prefix]))
            prefix++;
        return prefix;
    }
    if (text[0] == '"' || text[0] == '\\')
        buffer_append_byte(out, '\\');
    if (text[0] >= 0x20 && text[0] < 0x7f) {
        buffer_append_byte(out, text[0]);
        return 1;
    }
    if ((unsigned char)text[0] < 0x80) {
        append_escaped(out, text[0]);
        return 1;
    }
    size_t shown = shown_length(text, length);
    buffer_append(out, shown ? text : "?", shown ? shown : 1);
    return shown ? shown : 1;
}

void log_append_clean(struct buffer *out, const char *text, size_t length)
{
    while (length > 0) {
        size_t done = plain_run(text, length);
        buffer_append(out, text, done);
        if (done < length)
            done += append_special(out, text + done, length - done);
        text += done;
        length -= done;
    }
}
