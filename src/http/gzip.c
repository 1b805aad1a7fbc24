// SPDX-License-Identifier: Apache-2.0
// Compresses a text in pieces, with zlib.
#include "gzip.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

// Measured on sidebars: the highest level that costs less than what makes them; long ones are kept,
// and cost little to make.
enum { LEVEL = 6, LEVEL_LONG = 1, LONG_BYTES = 1 << 20 };
enum { WINDOW_BITS = 15 + 16, MEMORY_LEVEL = 8, CHUNK_BYTES = 16384 }; // 16: gzip, not zlib

struct gzip {
    z_stream stream;
    struct buffer from;
    struct buffer to;
    size_t at; // in `from`: up to it all is compressed
    bool failed;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

// Whether the parameters of a coding (";q=0.5") leave it allowed.
static bool weight_is_some(const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    size_t rest = equals ? length - (size_t)(equals + 1 - text) : 0;

    for (size_t i = 0; i < rest; i++)
        if (equals[1 + i] >= '1' && equals[1 + i] <= '9')
            return true;
    return !equals;
}

static bool coding_is(const char *text, size_t length, const char *name)
{
    return strlen(name) == length && strncasecmp(text, name, length) == 0;
}

bool gzip_is_accepted(const char *accept_encoding)
{
    bool any = false; // what "*" says

    for (const char *item = accept_encoding ? accept_encoding : ""; *item != '\0';) {
        size_t length = strcspn(item, ",");
        size_t name = 0;
        for (; length > 0 && is_blank(*item); length--)
            item++;
        while (name < length && item[name] != ';' && !is_blank(item[name]))
            name++;
        bool is_some = weight_is_some(item + name, length - name);
        if (coding_is(item, name, "gzip") || coding_is(item, name, "x-gzip"))
            return is_some;
        if (coding_is(item, name, "*"))
            any = is_some;
        item += length + (item[length] == ',');
    }
    return any;
}

struct gzip *gzip_new(void)
{
    struct gzip *gzip = calloc(1, sizeof *gzip);

    if (gzip && deflateInit2(&gzip->stream, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
                             Z_DEFAULT_STRATEGY) != Z_OK) {
        free(gzip);
        return NULL;
    }
    return gzip;
}

void gzip_free(struct gzip *gzip)
{
    if (!gzip)
        return;
    (void)deflateEnd(&gzip->stream);
    buffer_done(&gzip->from);
    buffer_done(&gzip->to);
    free(gzip);
}

void gzip_begin(struct gzip *gzip, struct buffer *text)
{
    int level = text->length > LONG_BYTES ? LEVEL_LONG : LEVEL;

    buffer_done(&gzip->from);
    buffer_done(&gzip->to);
    gzip->from = *text;
    buffer_init(text, gzip->from.length_max);
    buffer_init(&gzip->to, gzip->from.length); // more is of no use
    gzip->at = 0;
    gzip->failed = deflateReset(&gzip->stream) != Z_OK ||
                   deflateParams(&gzip->stream, level, Z_DEFAULT_STRATEGY) != Z_OK;
}

// Takes all that the stream gives for the input that it has.
static void output_take(struct gzip *gzip, int flush)
{
    unsigned char chunk[CHUNK_BYTES];

    do {
        gzip->stream.next_out = chunk;
        gzip->stream.avail_out = sizeof chunk;
        if (deflate(&gzip->stream, flush) == Z_STREAM_ERROR)
            gzip->failed = true;
        buffer_append(&gzip->to, chunk, sizeof chunk - gzip->stream.avail_out);
    } while (!gzip->failed && gzip->stream.avail_out == 0);
}

bool gzip_go_on(struct gzip *gzip, size_t bytes)
{
    size_t left = gzip->from.length - gzip->at;
    bool is_last = left <= bytes;

    if (gzip->failed)
        return true;
    gzip->stream.next_in = (unsigned char *)gzip->from.data + gzip->at;
    gzip->stream.avail_in = (unsigned)(is_last ? left : bytes);
    gzip->at += gzip->stream.avail_in;
    output_take(gzip, is_last ? Z_FINISH : Z_NO_FLUSH);
    gzip->failed = gzip->failed || buffer_failed(&gzip->to);
    return is_last || gzip->failed;
}

bool gzip_end(struct gzip *gzip, struct buffer *text)
{
    bool is_shorter = !gzip->failed;

    buffer_done(text);
    *text = is_shorter ? gzip->to : gzip->from;
    if (is_shorter)
        buffer_done(&gzip->from);
    else
        buffer_done(&gzip->to);
    gzip->from = gzip->to = (struct buffer){0};
    return is_shorter;
}
