// SPDX-License-Identifier: Apache-2.0
// Heads of requests. The front door's look, whose bytes come in any pieces: what the whole may be,
// each beginning of it may. The parser: what it takes the door takes, and is printed as it came.
#include "fuzz.h"
#include "http/head.h"
#include "http/path.h"

enum { PIECES = 64 };

static void beginning_check(const char *text, size_t length, const char *reason,
                            const struct head_progress *whole)
{
    struct head_progress part;
    char *copy = fuzz_bytes(text, length);
    const char *early = head_scan(copy, length, &part);
    assert(!early || reason);
    assert(part.length == 0 || part.length == whole->length);
    assert(part.line_length == 0 || part.line_length == whole->line_length);
    free(copy);
}

static void parse_check(const char *text, size_t length, bool is_fine)
{
    struct http_head head;
    char *copy = fuzz_bytes(text, length);
    const char *reason = head_parse(copy, length, &head);
    if (!reason) {
        size_t verb = strlen(head.verb), target = strlen(head.target);
        assert(is_fine && head.target[0] == '/' && (head.host || head.version[7] == '0'));
        assert(memcmp(text, head.verb, verb) == 0 && text[verb] == ' ');
        assert(memcmp(text + verb + 1, head.target, target) == 0);
        assert(memcmp(text + verb + target + 2, head.version, 8) == 0);
        assert(memcmp(text + length - 4, "\r\n\r\n", 4) == 0);
        assert(!head.transfer_encoding || !head.content_length);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct head_progress whole;
    const char *reason = head_scan(text, size, &whole);
    if (whole.length > 0) {
        assert(!reason && whole.line_length > 0);
        assert(memmem(text, size, "\r\n\r\n", 4) == text + whole.length - 4);
    }
    if (!reason && whole.length == 0 && size > 0)
        assert(!memmem(text, size, "\r\n\r\n", 4));
    for (size_t length = 0; length < size; length += 1 + size / PIECES)
        beginning_check(text, length, reason, &whole);
    (void)path_kind_of(text, size);
    parse_check(text, size, whole.length > 0);
    return 0;
}
