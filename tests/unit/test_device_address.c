// SPDX-License-Identifier: Apache-2.0
// Addresses of devices: their shapes, and what of them is a device's alone.
#include "base/error.h"
#include "chat/device_address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// RFC 8291, appendix A.
#define P256DH                                                                                     \
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
#define AUTH "BTBZMqHH6r4Tts7J_aSIgg"

static bool is_right(enum push_platform platform, int part, const char *text)
{
    return device_part_error(platform, part, text) == NULL;
}

static void platforms_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < PUSH_PLATFORM_MAX; i++)
        assert_int_equal(push_platform_find(push_platform_name((enum push_platform)i)), i);
    assert_int_equal(push_platform_find("sms"), PUSH_PLATFORM_MAX);
    assert_string_equal(device_part_name(PUSH_WEBPUSH, 2), "auth");
    assert_null(device_part_name(PUSH_WEBPUSH, 3));
    assert_null(device_part_name(PUSH_APNS, 1));
}

static void keys_of_browsers(void **state)
{
    char off_the_curve[] = P256DH;

    (void)state;
    assert_true(is_right(PUSH_WEBPUSH, 1, P256DH));
    assert_true(is_right(PUSH_WEBPUSH, 1, P256DH "="));
    off_the_curve[40] ^= 1;
    assert_false(is_right(PUSH_WEBPUSH, 1, off_the_curve));
    assert_false(is_right(PUSH_WEBPUSH, 1, AUTH));
    assert_false(is_right(PUSH_WEBPUSH, 1, P256DH "AAAA"));
    assert_true(is_right(PUSH_WEBPUSH, 2, AUTH));
    assert_false(is_right(PUSH_WEBPUSH, 2, AUTH "AA"));
}

static void lengths_end_where_they_should(void **state)
{
    char text[4098];

    (void)state;
    for (int length = 60; length < 205; length++) {
        memset(text, 'a', sizeof text);
        text[length] = '\0';
        assert_int_equal(is_right(PUSH_APNS, 0, text),
                         length >= 64 && length <= 200 && length % 2 == 0);
    }
    memset(text, 'x', sizeof text);
    text[4097] = '\0';
    assert_false(is_right(PUSH_FCM, 0, text));
    text[4096] = '\0';
    assert_true(is_right(PUSH_FCM, 0, text));
    assert_false(is_right(PUSH_MATRIX, 1, text));
    text[512] = '\0';
    assert_true(is_right(PUSH_MATRIX, 1, text));
}

static void token_is(const struct device_address *address, const char *expected)
{
    CLEANUP(buffer_done) struct buffer json = BUFFER(8192);
    CLEANUP(buffer_done) struct buffer token = BUFFER(8192);

    device_address_write(address, &json);
    assert_int_equal(device_address_token(json.data, json.length, &token), 0);
    assert_int_equal(token.length, strlen(expected));
    assert_memory_equal(token.data, expected, token.length);
}

static void a_device_is_known_by_its_token(void **state)
{
    CLEANUP(buffer_done) struct buffer token = BUFFER(64);

    (void)state;
    token_is(&(struct device_address){PUSH_APNS, {"ABcd01"}}, "abcd01");
    token_is(&(struct device_address){PUSH_FCM, {"ABcd01"}}, "ABcd01");
    token_is(&(struct device_address){PUSH_WEBPUSH, {"https://a", P256DH, AUTH}}, "https://a");
    token_is(&(struct device_address){PUSH_MATRIX, {"https://a", "key \"1\""}},
             "key \"1\" https://a");
    assert_int_equal(device_address_token("{}", 2, &token), -ERROR_INVALID_JSON);
    assert_int_equal(device_address_token("[", 1, &token), -ERROR_INVALID_JSON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(platforms_have_names),
        cmocka_unit_test(keys_of_browsers),
        cmocka_unit_test(lengths_end_where_they_should),
        cmocka_unit_test(a_device_is_known_by_its_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
