// SPDX-License-Identifier: Apache-2.0
// Compressing texts, and who takes it.
#include "../../src/http/gzip.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { TEXT_MAX = 3 << 20 };

static void who_takes_it(void **state)
{
    static const char *const do_take[] = {
        "gzip",
        "GZIP",
        "x-gzip",
        "deflate, gzip",
        "gzip;q=0.001",
        "gzip ; q=1.0",
        "br;q=1.0,gzip;q=0.8,*;q=0.1",
        "*",
        " *;q=1 ",
        "identity,\tgzip",
    };
    static const char *const do_not[] = {
        "",           ",",     "identity", "br",  "gzip;q=0",     "gzip; q=0.000",
        "gzip;q=0,*", "*;q=0", "gzipped",  "gzi", "deflate;gzip", "*, gzip;q=0",
    };

    (void)state;
    assert_false(gzip_is_accepted(NULL));
    for (size_t i = 0; i < sizeof do_take / sizeof *do_take; i++)
        assert_true(gzip_is_accepted(do_take[i]));
    for (size_t i = 0; i < sizeof do_not / sizeof *do_not; i++)
        assert_false(gzip_is_accepted(do_not[i]));
}

// Digits that repeat now and then.
static void text_make(struct buffer *text, size_t length)
{
    unsigned number = 1;

    buffer_init(text, TEXT_MAX + 16);
    while (text->length < length) {
        number = number * 1103515245u + 12345u;
        buffer_append_int(text, number >> 18);
        assert_false(buffer_failed(text)); // it would get no longer
    }
    text->length = length;
}

static void text_read_back(const struct buffer *text, const char *wanted, size_t length)
{
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    char *out = malloc(length + 1);
    size_t count = 0;

    assert_non_null(decompressor);
    assert_non_null(out);
    assert_int_equal(
        libdeflate_gzip_decompress(decompressor, text->data, text->length, out, length + 1, &count),
        LIBDEFLATE_SUCCESS);
    assert_int_equal(count, length);
    assert_memory_equal(out, wanted, length);
    libdeflate_free_decompressor(decompressor);
    free(out);
}

static void the_text_comes_back(void **state)
{
    static const size_t lengths[] = {1025, 65536, 200000, 1 << 20, (1 << 20) + 1, TEXT_MAX};
    struct gzip *gzip = gzip_new();

    (void)state;
    assert_non_null(gzip);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct buffer text, copy;
        text_make(&text, lengths[i]);
        text_make(&copy, lengths[i]);
        assert_true(gzip_text(gzip, &text));
        assert_true(text.length < lengths[i]);
        text_read_back(&text, copy.data, copy.length);
        buffer_done(&text);
        buffer_done(&copy);
    }
    gzip_free(gzip);
}

static void what_gets_no_shorter_stays(void **state)
{
    static const char *const texts[] = {"", "{}", "0123456789"};
    struct gzip *gzip = gzip_new();
    struct buffer text;

    (void)state;
    assert_non_null(gzip);
    buffer_init(&text, TEXT_MAX);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        buffer_clear(&text);
        buffer_append_text(&text, texts[i]);
        assert_false(gzip_text(gzip, &text));
        assert_int_equal(text.length, strlen(texts[i]));
        assert_memory_equal(text.data, texts[i], text.length);
    }
    buffer_done(&text);
    gzip_free(gzip);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_takes_it),
        cmocka_unit_test(the_text_comes_back),
        cmocka_unit_test(what_gets_no_shorter_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
