// SPDX-License-Identifier: Apache-2.0
// Chunked bodies: what they say, and which are refused.
#include "../../src/http/chunks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Decodes `text` in pieces of `piece` bytes into `ret_body`. How many bytes were taken.
static size_t decode(struct chunks *chunks, const char *text, size_t piece, char *ret_body)
{
    size_t taken = 0;
    *chunks = (struct chunks){0};
    ret_body[0] = '\0';
    while (text[taken] != '\0' && !chunks_at_end(chunks) && !chunks->reason) {
        const char *data;
        size_t size;
        taken += chunks_read(chunks, text + taken, strnlen(text + taken, piece), &data, &size);
        strncat(ret_body, data, size);
    }
    return taken;
}

static void bodies_are_decoded(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *body;
        const char *rest;
    } cases[] = {
        {"3\r\na=1\r\n0\r\n\r\n", "a=1", ""},
        {"3\r\na=1\r\n4\r\n&b=2\r\n0\r\n\r\nGET /", "a=1&b=2", "GET /"},
        {"0\r\n\r\n", "", ""},
        {"00000000000003\r\na=1\r\n000\r\n\r\n", "a=1", ""},
        {"A\r\n0123456789\r\n0\r\n\r\n", "0123456789", ""},
        {"3;name=value;x=\"y\"\r\na=1\r\n0;last\r\n\r\n", "a=1", ""},
        {"3\r\na=1\r\n0\r\nX-Sum: 1\r\nY:\r\n\r\nrest", "a=1", "rest"},
        {"4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t piece = 1; piece < 64; piece++) {
            struct chunks chunks;
            char body[64];
            size_t taken = decode(&chunks, cases[i].text, piece, body);
            assert_null(chunks.reason);
            assert_true(chunks_at_end(&chunks));
            assert_string_equal(body, cases[i].body);
            assert_string_equal(cases[i].text + taken, cases[i].rest);
        }
    }
}

static void malformed_framing_is_refused(void **state)
{
    (void)state;
    static const char line[] = "a line of the chunked body does not end with CR LF";
    static const char size[] = "a malformed chunk size";
    static const struct {
        const char *text;
        const char *reason;
    } cases[] = {
        {"3\na=1\r\n0\r\n\r\n", line},
        {"3\r\na=1\n0\r\n\r\n", line},
        {"3\r\na=1\r\n0\n\r\n", line},
        {"3\r\na=1\r\n0\r\n\n", line},
        {"3\r\na=1\r\n0\r\nX: y\n\r\n", line},
        {"3;x\na=1\r\n0\r\n\r\n", line},
        {"3\r\r\na=1", line},
        {"3\r\na=12\r\n0\r\n\r\n", line},
        {"3\r\na=1\r\n0\r\nX: y\r\r\n", line},
        {"-1\r\n", size},
        {"+3\r\n", size},
        {" 3\r\n", size},
        {"3 \r\n", size},
        {"0x3\r\n", size},
        {"\r\n", size},
        {"\n", size},
        {";x\r\n", size},
        {"ffffffffffffffff\r\n", "a chunk's size is too large"},
        {"0000000000000003\r\n", "a chunk's size is too large"},
        {"0\r\nX y: z\r\n\r\n", "a malformed trailer"},
        {"0\r\n: z\r\n\r\n", line},
        {"0\r\n folded\r\n\r\n", line},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t piece = 1; piece < 32; piece++) {
            struct chunks chunks;
            char body[64];
            decode(&chunks, cases[i].text, piece, body);
            assert_false(chunks_at_end(&chunks));
            assert_non_null(chunks.reason);
            assert_string_equal(chunks.reason, cases[i].reason);
        }
    }
}

static void lines_are_bounded(void **state)
{
    (void)state;
    char text[2048];
    char body[64];
    struct chunks chunks;
    snprintf(text, sizeof text, "3;%01500d\r\na=1\r\n0\r\n\r\n", 0);
    decode(&chunks, text, sizeof text, body);
    assert_string_equal(chunks.reason, "a line of the chunked body is too long");
    snprintf(text, sizeof text, "3\r\na=1\r\n0\r\nX: %0600d\r\nY: %0600d\r\n\r\n", 0, 0);
    decode(&chunks, text, sizeof text, body);
    assert_string_equal(chunks.reason, "a line of the chunked body is too long");
    snprintf(text, sizeof text, "3;%0800d\r\na=1\r\n0;%0800d\r\n\r\n", 0, 0);
    decode(&chunks, text, sizeof text, body);
    assert_true(chunks_at_end(&chunks));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_decoded),
        cmocka_unit_test(malformed_framing_is_refused),
        cmocka_unit_test(lines_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
