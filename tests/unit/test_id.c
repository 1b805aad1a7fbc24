// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text.h"

static void ids_are_parsed_strictly(void **state)
{
    (void)state;
    assert_true(id_is_valid("C12", "CGD"));
    assert_true(id_is_valid("D0123456789ABCDEFGHI", "CGD"));
    const char *const bad[] = {"",     "C",    "C1",   "c12",   "X12", "C0123456789ABCDEFGHIJ",
                               "C1-2", "C12 ", " C12", "C12\n", "C1a", "C12/../D34"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(id_is_valid(bad[i], "CGD"));
    assert_false(id_is_valid(NULL, "C"));
}

static void made_ids_are_valid_and_differ(void **state)
{
    (void)state;
    char ids[200][ID_SIZE];
    for (int i = 0; i < 200; i++) {
        id_make('C', ids[i]);
        assert_true(id_is_valid(ids[i], "C"));
        assert_int_equal(strlen(ids[i]), 11);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(ids[i], ids[j]);
    }
}

static void tokens_hold_256_bits_and_differ(void **state)
{
    (void)state;
    char first[64], second[64];
    token_make("xoxb", first);
    token_make("xoxb", second);
    assert_memory_equal(first, "xoxb-", 5);
    assert_int_equal(strlen(first), 5 + 43);
    assert_string_not_equal(first, second);
    assert_int_equal(strspn(first + 5, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789"),
                     43);
}

static void ts_survive_a_round_trip(void **state)
{
    (void)state;
    const char *const texts[] = {"1717200000.123456", "0000000000.000000", "9999999999.999999",
                                 "0000000001.000001"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int64_t ts_us;
        char text[TS_SIZE];
        assert_int_equal(ts_parse(texts[i], 17, &ts_us), 0);
        ts_print(ts_us, text);
        assert_string_equal(text, texts[i]);
    }
}

static void other_forms_of_ts_are_refused(void **state)
{
    (void)state;
    const char *const bad[] = {"",
                               "0",
                               "1717200000",
                               "1717200000.12345",
                               "1717200000.1234567",
                               "171720000.1234567",
                               "17172000000.12345",
                               "1717200000,123456",
                               "-717200000.123456",
                               "1717200000.12345a",
                               " 717200000.123456",
                               "1717200000.12345\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t ts_us = 7;
        assert_int_equal(ts_parse(bad[i], strlen(bad[i]), &ts_us), -ERROR_INVALID_TIMESTAMP);
        assert_int_equal(ts_us, 7);
    }
}

static void moments_have_any_number_of_decimals(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t ts_us; // -1: refused
    } cases[] = {{"1717200000.123456", 1717200000123456},
                 {"1717200000", 1717200000000000},
                 {"0", 0},
                 {"5.5", 5500000},
                 {"1717200000.1234567", 1717200000123456},
                 {"9999999999.99999999999999999999999", 9999999999999999},
                 {"00.0", 0},
                 {"", -1},
                 {".5", -1},
                 {"5.", -1},
                 {"17172000000", -1},
                 {"1717200000,5", -1},
                 {"1717200000.5x", -1},
                 {"1717200000.5.5", -1},
                 {"1717200000.1234567x", -1},
                 {"-5", -1},
                 {" 5", -1},
                 {"1e9", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t ts_us = -1;
        int r = ts_parse_moment(cases[i].text, strlen(cases[i].text), &ts_us);
        assert_int_equal(r, cases[i].ts_us < 0 ? -ERROR_INVALID_TIMESTAMP : 0);
        assert_int_equal(ts_us, cases[i].ts_us);
    }
}

static void ts_out_of_range_are_printed_as_the_nearest(void **state)
{
    (void)state;
    char text[TS_SIZE];
    ts_print(-1, text);
    assert_string_equal(text, "0000000000.000000");
    ts_print(INT64_MAX, text);
    assert_string_equal(text, "9999999999.999999");
}

static void parse_integer(const char *text, int64_t min, int64_t max, int r, int64_t expected)
{
    int64_t number = 77;
    assert_int_equal(integer_parse(text, strlen(text), min, max, &number), r);
    assert_int_equal(number, r < 0 ? 77 : expected);
}

static void integers_are_parsed_strictly_within_their_range(void **state)
{
    (void)state;
    parse_integer("0", 0, 10, 0, 0);
    parse_integer("10", 0, 10, 0, 10);
    parse_integer("-5", -5, 10, 0, -5);
    parse_integer("9223372036854775807", 0, INT64_MAX, 0, INT64_MAX);
    parse_integer("-9223372036854775808", INT64_MIN, 0, 0, INT64_MIN);
    const char *const bad[] = {"",
                               "-",
                               "+1",
                               "01",
                               "-0",
                               "00",
                               " 1",
                               "1 ",
                               "1x",
                               "0x1",
                               "9223372036854775808",
                               "-9223372036854775809",
                               "1.0",
                               "1e3",
                               "--1",
                               "99999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        parse_integer(bad[i], INT64_MIN, INT64_MAX, -ERROR_INVALID_ARGUMENTS, 0);
    parse_integer("11", 0, 10, -ERROR_INVALID_ARGUMENTS, 0);
    parse_integer("-1", 0, 10, -ERROR_INVALID_ARGUMENTS, 0);
}

static void only_valid_utf8_without_nul_is_text(void **state)
{
    (void)state;
    const char *const good[] = {"",
                                "plain text, longer than a word",
                                "é",
                                "\xed\x9f\xbf",
                                "\xee\x80\x80",
                                "\xf0\x90\x80\x80",
                                "\xf4\x8f\xbf\xbf",
                                "aaaaaaaé",
                                "\x7f"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(text_is_utf8(good[i], strlen(good[i])));
    const char *const bad[] = {
        "\x80",         "\xc0\xaf",         "\xc1\xbf",         "\xe0\x9f\xbf",     "\xed\xa0\x80",
        "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
        "\xc3",         "\xe2\x82",         "\xf0\x9f\x98",     "aaaaaaaa\xc3",     "\xc3(",
        "\xe2\x28\xa1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(text_is_utf8(bad[i], strlen(bad[i])));
    assert_false(text_is_utf8("a\0b", 3));
    assert_false(text_is_utf8("aaaaaaa\0", 8));
}

static void code_points_are_counted_not_bytes(void **state)
{
    (void)state;
    const char *text = "aé€😀b";
    assert_int_equal(text_code_points(text, strlen(text)), 5);
    assert_int_equal(text_prefix_length(text, strlen(text), 0), 0);
    assert_int_equal(text_prefix_length(text, strlen(text), 2), 3);
    assert_int_equal(text_prefix_length(text, strlen(text), 4), 10);
    assert_int_equal(text_prefix_length(text, strlen(text), 5), 11);
    assert_int_equal(text_prefix_length(text, strlen(text), 50), 11);
}

static void digests_are_sha256(void **state)
{
    (void)state;
    char hex[DIGEST_HEX_SIZE];
    digest_sha256_hex("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    digest_sha256_hex("", 0, hex);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void errors_have_their_code_and_status(void **state)
{
    (void)state;
    assert_string_equal(error_code(-ERROR_CHANNEL_NOT_FOUND), "channel_not_found");
    assert_string_equal(error_code(ERROR_CHANNEL_NOT_FOUND), "channel_not_found");
    assert_int_equal(error_http_status(-ERROR_CHANNEL_NOT_FOUND), 404);
    assert_int_equal(error_from_code("channel_not_found"), -ERROR_CHANNEL_NOT_FOUND);
    assert_int_equal(error_from_code("no such code"), -ERROR_INTERNAL);
    assert_string_equal(error_code(12345), "internal_error");
    assert_string_equal(error_code(INT32_MIN), "internal_error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_parsed_strictly),
        cmocka_unit_test(made_ids_are_valid_and_differ),
        cmocka_unit_test(tokens_hold_256_bits_and_differ),
        cmocka_unit_test(ts_survive_a_round_trip),
        cmocka_unit_test(other_forms_of_ts_are_refused),
        cmocka_unit_test(moments_have_any_number_of_decimals),
        cmocka_unit_test(ts_out_of_range_are_printed_as_the_nearest),
        cmocka_unit_test(integers_are_parsed_strictly_within_their_range),
        cmocka_unit_test(only_valid_utf8_without_nul_is_text),
        cmocka_unit_test(code_points_are_counted_not_bytes),
        cmocka_unit_test(digests_are_sha256),
        cmocka_unit_test(errors_have_their_code_and_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
