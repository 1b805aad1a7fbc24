// SPDX-License-Identifier: Apache-2.0
// Compresses a complete text with libdeflate.
#include "gzip.h"

#include <libdeflate.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Levels measured on sidebars (docs/decisions/2026-11-25-gzip.md). Highly repetitive text, such as
// a list, costs little even at a higher level. Text above 1 MiB comes from a cache and cost little
// to produce, so it gets the fastest level.
enum { LEVEL = 6, LEVEL_LIST = 7, LEVEL_LONG = 1, LONG_BYTES = 1 << 20 };
// A list shrinks by this factor within its first bytes.
enum { SAMPLE_BYTES = 32768, LIST_TIMES = 8 };

struct gzip {
    struct libdeflate_compressor *usual;
    struct libdeflate_compressor *list;
    struct libdeflate_compressor *fast;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

// Whether a coding's parameters (";q=0.5") allow it: a weight above 0, or none given.
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
    bool any = false; // whether "*" is allowed

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

    if (!gzip)
        return NULL;
    gzip->usual = libdeflate_alloc_compressor(LEVEL);
    gzip->list = libdeflate_alloc_compressor(LEVEL_LIST);
    gzip->fast = libdeflate_alloc_compressor(LEVEL_LONG);
    if (gzip->usual && gzip->list && gzip->fast)
        return gzip;
    gzip_free(gzip);
    return NULL;
}

void gzip_free(struct gzip *gzip)
{
    if (!gzip)
        return;
    libdeflate_free_compressor(gzip->usual);
    libdeflate_free_compressor(gzip->list);
    libdeflate_free_compressor(gzip->fast);
    free(gzip);
}

static struct libdeflate_compressor *compressor_of(const struct gzip *gzip,
                                                   const struct buffer *text)
{
    char out[SAMPLE_BYTES / LIST_TIMES];
    size_t sample = text->length < SAMPLE_BYTES ? text->length : SAMPLE_BYTES;

    if (text->length > LONG_BYTES)
        return gzip->fast;
    bool is_list =
        libdeflate_gzip_compress(gzip->fast, text->data, sample, out, sample / LIST_TIMES) > 0;
    return is_list ? gzip->list : gzip->usual;
}

bool gzip_text(struct gzip *gzip, struct buffer *text)
{
    size_t room = text->length > 0 ? text->length - 1 : 0; // only a shorter result is useful
    char *out = malloc(room + 1);
    struct buffer shorter;

    if (!out)
        return false;
    size_t length = libdeflate_gzip_compress(compressor_of(gzip, text), text->data, text->length,
                                             out, room); // 0: did not fit
    buffer_init(&shorter, text->length_max);
    buffer_append(&shorter, out, length);
    free(out);
    if (length == 0 || buffer_failed(&shorter)) {
        buffer_done(&shorter);
        return false;
    }
    buffer_done(text);
    *text = shorter;
    return true;
}
