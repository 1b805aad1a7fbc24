// SPDX-License-Identifier: Apache-2.0
// Chunked bodies, in pieces of any size, against a reader that looks at one whole line after the
// other. The first byte says how long the pieces are.
#include "../../src/http/chunks.h"
#include "fuzz.h"

#include <ctype.h>

enum { LINES_MAX = 1024, DIGITS_MAX = 15 };

struct body {
    char *data;
    size_t size;
    size_t taken;
    bool complete;
};

// The line at `at`, NULL when it does not end with CR LF or holds another control character.
static const char *line_end(const char *at, const char *end)
{
    const char *feed = end > at ? memmem(at, (size_t)(end - at), "\r\n", 2) : NULL;
    for (const char *byte = at; feed && byte < feed; byte++) {
        if (((unsigned char)*byte < 0x20 && *byte != '\t') || *byte == 0x7f)
            return NULL;
    }
    return feed;
}

static bool size_read(const char *line, const char *end, uint64_t *ret_size)
{
    char digits[DIGITS_MAX + 1] = "";
    size_t count = 0;
    while (line + count < end && isxdigit((unsigned char)line[count]) && count < DIGITS_MAX) {
        digits[count] = line[count];
        count++;
    }
    *ret_size = strtoull(digits, NULL, 16);
    return count > 0 && (line + count == end || line[count] == ';');
}

static bool trailer_is_fine(const char *line, const char *end)
{
    const char *colon = memchr(line, ':', (size_t)(end - line));
    for (const char *byte = line; colon && byte < colon; byte++) {
        if (!isgraph((unsigned char)*byte) || strchr("\"(),/:;<=>?@[\\]{}", *byte))
            return false;
    }
    return colon && colon > line;
}

// Reads the lines behind the last chunk.
static void trailers_read(const char *at, const char *from, const char *end, size_t lines,
                          struct body *body)
{
    for (const char *feed; (feed = line_end(at, end)); at = feed + 2) {
        if (lines + (size_t)(feed + 2 - from) > LINES_MAX)
            return;
        if (feed == at) {
            body->complete = true;
            body->taken = (size_t)(feed + 2 - from);
            return;
        }
        if (!trailer_is_fine(at, feed))
            return;
    }
}

static struct body body_expect(const char *text, size_t size)
{
    struct body body = {.data = fuzz_bytes(text, size)};
    const char *end = text + size;
    size_t lines = 0;
    uint64_t length;
    for (const char *at = text, *feed; (feed = line_end(at, end)); at += length + 2) {
        lines += (size_t)(feed + 2 - at);
        if (!size_read(at, feed, &length) || lines > LINES_MAX)
            break;
        at = feed + 2;
        if (length == 0) {
            trailers_read(at, at, end, lines, &body);
            body.taken += (size_t)(at - text);
            break;
        }
        if ((uint64_t)(end - at) < length + 2 || memcmp(at + length, "\r\n", 2) != 0)
            break;
        memcpy(body.data + body.size, at, length);
        body.size += length;
        lines = 2;
    }
    return body;
}

static struct body body_read(const char *text, size_t size, size_t piece)
{
    struct body body = {.data = fuzz_bytes(text, size)};
    struct chunks chunks = {0};
    while (body.taken < size && !chunks_at_end(&chunks) && !chunks.reason) {
        size_t left = size - body.taken;
        size_t length = left < piece ? left : piece;
        char *copy = fuzz_bytes(text + body.taken, length);
        const char *data;
        size_t count;
        size_t taken = chunks_read(&chunks, copy, length, &data, &count);
        assert(taken > 0 && taken <= length && count <= taken);
        assert(count == 0 || data + count == copy + taken);
        memcpy(body.data + body.size, data, count);
        body.size += count;
        body.taken += taken;
        free(copy);
    }
    body.complete = chunks_at_end(&chunks);
    assert(!(body.complete && chunks.reason));
    return body;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    struct body expected = body_expect(text, size - 1);
    struct body whole = body_read(text, size - 1, size);
    struct body pieces = body_read(text, size - 1, 1 + data[0] % 32);
    assert(whole.complete == expected.complete && pieces.complete == expected.complete);
    assert(whole.taken == pieces.taken && whole.size == pieces.size);
    assert(whole.size == 0 || memcmp(whole.data, pieces.data, whole.size) == 0);
    if (expected.complete) {
        assert(whole.taken == expected.taken && whole.size == expected.size);
        assert(whole.size == 0 || memcmp(whole.data, expected.data, whole.size) == 0);
    }
    free(expected.data);
    free(whole.data);
    free(pieces.data);
    return 0;
}
