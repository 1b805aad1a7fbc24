// SPDX-License-Identifier: Apache-2.0
// Writes JSON straight into a buffer. Each value reserves its maximum size at once and then writes
// without further checks.
#include "base/json_writer.h"

#include <stdint.h>
#include <string.h>

#include "base/id.h"

struct json_writer json_writer_to(struct buffer *out)
{
    return (struct json_writer){.out = out};
}

// Writes a comma if one is due, and reserves `length` more bytes. NULL if they do not fit.
static char *json_begin(struct json_writer *w, size_t length)
{
    char *to = buffer_reserve(w->out, length + 1);
    if (!to)
        return NULL;
    if (w->comma) {
        *to++ = ',';
        w->out->length++;
    }
    w->comma = true;
    return to;
}

static void json_plain(struct json_writer *w, const char *text, size_t length)
{
    char *to = json_begin(w, length);
    if (!to)
        return;
    memcpy(to, text, length);
    w->out->length += length;
}

void json_open_object(struct json_writer *w)
{
    json_plain(w, "{", 1);
    w->comma = false;
}

void json_close_object(struct json_writer *w)
{
    buffer_append_byte(w->out, '}');
    w->comma = true;
}

void json_open_array(struct json_writer *w)
{
    json_plain(w, "[", 1);
    w->comma = false;
}

void json_close_array(struct json_writer *w)
{
    buffer_append_byte(w->out, ']');
    w->comma = true;
}

static bool json_byte_is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte != '"' && byte != '\\';
}

// Whether none of eight bytes needs escaping: the high bit of a sum's byte stays set if that byte
// is below 0x20, a quote or a backslash. (A borrow may also flag the byte above a flagged one; the
// bytewise check that follows corrects this.)
static bool json_word_is_plain(const char *text)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t word;
    memcpy(&word, text, sizeof word);
    uint64_t quote = word ^ (ones * '"');
    uint64_t slash = word ^ (ones * '\\');
    uint64_t low = (word - ones * 0x20) & ~word;
    return ((low | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & (ones * 0x80)) == 0;
}

// The number of leading bytes of `text` that need no escaping.
static size_t json_plain_run(const char *text, size_t length)
{
    size_t run = 0;
    while (run + 8 <= length && json_word_is_plain(text + run))
        run += 8;
    while (run < length && json_byte_is_plain((unsigned char)text[run]))
        run++;
    return run;
}

static void json_append_escaped(struct buffer *out, unsigned char byte)
{
    static const char letters[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                                   ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\'};
    static const char hex[] = "0123456789abcdef";
    if (byte < sizeof letters && letters[byte]) {
        buffer_append(out, (char[]){'\\', letters[byte]}, 2);
        return;
    }
    buffer_append(out, (char[]){'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]}, 6);
}

// Appends the rest of a string, starting at its first byte that needs escaping, and the closing
// quote.
static void json_append_rest(struct buffer *out, const char *text, size_t length)
{
    while (length > 0) {
        size_t run = json_plain_run(text, length);
        buffer_append(out, text, run);
        if (run < length)
            json_append_escaped(out, (unsigned char)text[run++]);
        text += run;
        length -= run;
    }
    buffer_append_byte(out, '"');
}

void json_string_n(struct json_writer *w, const char *text, size_t length)
{
    char *to = json_begin(w, length + 2);
    if (!to)
        return;
    size_t run = json_plain_run(text, length);
    *to++ = '"';
    if (run > 0)
        memcpy(to, text, run);
    w->out->length += run + 1;
    if (run < length) {
        json_append_rest(w->out, text + run, length - run);
        return;
    }
    to[run] = '"';
    w->out->length++;
}

void json_text(struct json_writer *w, const char *text)
{
    json_string_n(w, text, strlen(text));
}

void json_int(struct json_writer *w, int64_t number)
{
    if (json_begin(w, 0))
        buffer_append_int(w->out, number);
}

void json_bool(struct json_writer *w, bool value)
{
    json_plain(w, value ? "true" : "false", value ? 4 : 5);
}

void json_none(struct json_writer *w)
{
    json_plain(w, "null", 4);
}

void json_ts(struct json_writer *w, int64_t ts_us)
{
    char text[TS_SIZE + 1];
    ts_print(ts_us, text + 1);
    text[0] = '"';
    text[TS_SIZE] = '"';
    json_plain(w, text, sizeof text);
}

void json_raw(struct json_writer *w, const char *json, size_t length)
{
    json_plain(w, json, length);
}
