// SPDX-License-Identifier: Apache-2.0
// Compressing in pieces, and who takes it.
#include "../../src/http/gzip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { TEXT_MAX = 3 << 20, WINDOW_BITS = 15 + 16 };

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
    }
    text->length = length;
}

static void text_read_back(const struct buffer *text, const char *wanted, size_t length)
{
    z_stream stream = {0};
    unsigned char *out = malloc(length + 1);

    assert_non_null(out);
    assert_int_equal(inflateInit2(&stream, WINDOW_BITS), Z_OK);
    stream.next_in = (unsigned char *)text->data;
    stream.avail_in = (unsigned)text->length;
    stream.next_out = out;
    stream.avail_out = (unsigned)length + 1;
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.total_out, length);
    assert_memory_equal(out, wanted, length);
    assert_int_equal(inflateEnd(&stream), Z_OK);
    free(out);
}

static void the_text_comes_back(void **state)
{
    static const size_t lengths[] = {1025, 65536, 65537, 200000, 1 << 20, (1 << 20) + 1, TEXT_MAX};
    static const size_t pieces[] = {1000, 65536, TEXT_MAX};
    struct gzip *gzip = gzip_new();

    (void)state;
    assert_non_null(gzip);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
            struct buffer text, copy;
            text_make(&text, lengths[i]);
            text_make(&copy, lengths[i]);
            gzip_begin(gzip, &text);
            assert_int_equal(text.length, 0);
            size_t rounds = 1;
            for (; !gzip_go_on(gzip, pieces[k]); rounds++)
                assert_true(rounds * pieces[k] < lengths[i]);
            assert_int_equal(rounds, (lengths[i] + pieces[k] - 1) / pieces[k]);
            assert_true(gzip_end(gzip, &text));
            assert_true(text.length < lengths[i]);
            text_read_back(&text, copy.data, copy.length);
            buffer_done(&text);
            buffer_done(&copy);
        }
    }
    gzip_free(gzip);
}

static void what_gets_no_shorter_stays(void **state)
{
    struct gzip *gzip = gzip_new();
    struct buffer text;

    (void)state;
    assert_non_null(gzip);
    for (int i = 0; i < 2; i++) {
        buffer_init(&text, TEXT_MAX);
        buffer_append_text(&text, "{}");
        gzip_begin(gzip, &text);
        assert_true(gzip_go_on(gzip, 65536));
        assert_false(gzip_end(gzip, &text));
        assert_int_equal(text.length, 2);
        assert_memory_equal(text.data, "{}", 2);
        buffer_done(&text);
    }
    text_make(&text, 5000); // ends in the middle
    gzip_begin(gzip, &text);
    assert_false(gzip_go_on(gzip, 1000));
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
