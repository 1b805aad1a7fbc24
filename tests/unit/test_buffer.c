// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json_writer.h"

#define assert_holds(b, text)                                                                      \
    do {                                                                                           \
        assert_false(buffer_failed(b));                                                            \
        assert_int_equal((b)->length, strlen(text));                                               \
        assert_memory_equal((b)->data, text, strlen(text));                                        \
    } while (0)

static void appends_of_all_kinds_follow_one_another(void **state)
{
    (void)state;
    CLEANUP(buffer_done) struct buffer b;
    buffer_init(&b, 1000);
    buffer_append(&b, "ab", 2);
    buffer_append_text(&b, "cd");
    buffer_append_byte(&b, '-');
    buffer_append_int(&b, INT64_MIN);
    buffer_append_int(&b, 0);
    buffer_append_format(&b, " %s=%d", "x", 7);
    assert_holds(&b, "abcd--92233720368547758080 x=7");
}

static void a_buffer_takes_its_maximum_and_not_a_byte_more(void **state)
{
    (void)state;
    CLEANUP(buffer_done) struct buffer b;
    char bytes[300];
    memset(bytes, 'x', sizeof bytes);
    buffer_init(&b, 300);
    buffer_append(&b, bytes, 299);
    buffer_append_byte(&b, 'y');
    assert_false(buffer_failed(&b));
    assert_int_equal(b.length, 300);
    buffer_append_byte(&b, 'z');
    assert_true(buffer_failed(&b));
    assert_int_equal(b.length, 300);
}

static void nothing_follows_what_was_dropped(void **state)
{
    (void)state;
    CLEANUP(buffer_done) struct buffer b;
    buffer_init(&b, 4);
    buffer_append_text(&b, "ab");
    buffer_append_text(&b, "cde");
    buffer_append_text(&b, "f");
    assert_true(buffer_failed(&b));
    assert_int_equal(b.length, 2);
    assert_null(buffer_reserve(&b, 1));
    buffer_clear(&b);
    buffer_append_text(&b, "fghi");
    assert_holds(&b, "fghi");
}

static void an_all_zero_buffer_takes_nothing(void **state)
{
    (void)state;
    struct buffer b = {0};
    buffer_append_byte(&b, 'a');
    assert_true(buffer_failed(&b));
    buffer_done(&b);
    buffer_done(NULL);
}

static void long_formats_are_not_cut(void **state)
{
    (void)state;
    CLEANUP(buffer_done) struct buffer b;
    buffer_init(&b, 5000);
    buffer_append_format(&b, "%2000d|", 1);
    assert_int_equal(b.length, 2001);
    assert_memory_equal(b.data + 1998, " 1|", 3);
}

static void consuming_keeps_the_rest(void **state)
{
    (void)state;
    CLEANUP(buffer_done) struct buffer b;
    buffer_init(&b, 100);
    buffer_append_text(&b, "hello world");
    assert_holds(&b, "hello world");
    buffer_consume(&b, 6);
    assert_holds(&b, "world");
    buffer_consume(&b, 5);
    assert_int_equal(b.length, 0);
}

static void taken_text_belongs_to_the_taker(void **state)
{
    (void)state;
    CLEANUP(buffer_done) struct buffer b;
    buffer_init(&b, 5);
    buffer_append_text(&b, "hello");
    CLEANUP_FREE char *text = buffer_take_text(&b);
    assert_string_equal(text, "hello");
    CLEANUP_FREE char *empty = buffer_take_text(&b);
    assert_string_equal(empty, "");
    buffer_append_text(&b, "too long");
    assert_null(buffer_take_text(&b));
}

static void json_puts_commas_by_itself(void **state)
{
    (void)state;
    CLEANUP(buffer_done) struct buffer b;
    buffer_init(&b, 1000);
    struct json_writer w = json_writer_to(&b);
    json_open_object(&w);
    json_key_bool(&w, "ok", true);
    json_key(&w, "list");
    json_open_array(&w);
    json_int(&w, -1);
    json_none(&w);
    json_open_object(&w);
    json_close_object(&w);
    json_raw(&w, "[2]", 3);
    json_close_array(&w);
    json_key_ts(&w, "ts", 1717200000123456);
    json_key_string(&w, "s", "");
    json_key_int(&w, "n", 5);
    json_close_object(&w);
    assert_holds(&b, "{\"ok\":true,\"list\":[-1,null,{},[2]],\"ts\":\"1717200000.123456\","
                     "\"s\":\"\",\"n\":5}");
}

static void json_escapes_what_json_demands_and_no_more(void **state)
{
    (void)state;
    CLEANUP(buffer_done) struct buffer b;
    buffer_init(&b, 1000);
    struct json_writer w = json_writer_to(&b);
    json_text(&w, "a\"b\\c\n\r\t\b\f\x01\x1f/\x7f é 😀 </script>");
    assert_holds(&b, "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f/\x7f é 😀 </script>\"");
}

static void escape_at(size_t length, size_t at, char byte, const char *escaped)
{
    CLEANUP(buffer_done) struct buffer b;
    char text[64], expected[80];
    memset(text, 'x', sizeof text);
    text[at] = byte;
    memset(expected, 'x', sizeof expected);
    expected[0] = '"';
    size_t escaped_length = strlen(escaped);
    memcpy(expected + 1 + at, escaped, escaped_length);
    size_t expected_length = length + escaped_length + 1;
    expected[expected_length - 1] = '"';
    buffer_init(&b, 100);
    struct json_writer w = json_writer_to(&b);
    json_string_n(&w, text, length);
    assert_int_equal(b.length, expected_length);
    assert_memory_equal(b.data, expected, expected_length);
}

static void json_escapes_at_every_place_of_a_word(void **state)
{
    (void)state;
    for (size_t length = 1; length <= 33; length++)
        for (size_t at = 0; at < length; at++) {
            escape_at(length, at, '"', "\\\"");
            escape_at(length, at, '\\', "\\\\");
            escape_at(length, at, 0x1f, "\\u001f");
            escape_at(length, at, 0, "\\u0000");
            escape_at(length, at, ' ', " ");
            escape_at(length, at, '!', "!");
            escape_at(length, at, '#', "#");
            escape_at(length, at, ']', "]");
            escape_at(length, at, (char)0xff, "\xff");
        }
}

static void json_that_does_not_fit_fails_as_a_whole(void **state)
{
    (void)state;
    CLEANUP(buffer_done) struct buffer b;
    buffer_init(&b, 7);
    struct json_writer w = json_writer_to(&b);
    json_open_array(&w);
    json_text(&w, "abc");
    json_close_array(&w);
    assert_holds(&b, "[\"abc\"]");
    buffer_clear(&b);
    w = json_writer_to(&b);
    json_open_array(&w);
    json_text(&w, "abcd\n");
    json_close_array(&w);
    assert_true(buffer_failed(&b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_of_all_kinds_follow_one_another),
        cmocka_unit_test(a_buffer_takes_its_maximum_and_not_a_byte_more),
        cmocka_unit_test(nothing_follows_what_was_dropped),
        cmocka_unit_test(an_all_zero_buffer_takes_nothing),
        cmocka_unit_test(long_formats_are_not_cut),
        cmocka_unit_test(consuming_keeps_the_rest),
        cmocka_unit_test(taken_text_belongs_to_the_taker),
        cmocka_unit_test(json_puts_commas_by_itself),
        cmocka_unit_test(json_escapes_what_json_demands_and_no_more),
        cmocka_unit_test(json_escapes_at_every_place_of_a_word),
        cmocka_unit_test(json_that_does_not_fit_fails_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
