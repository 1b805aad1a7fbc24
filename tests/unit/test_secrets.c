// SPDX-License-Identifier: Apache-2.0
// Secrets at rest: opened as they were sealed, and by nothing but the right key at the right place.
#include "base/base64.h"
#include "base/error.h"
#include "base/secrets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define KEY_1 "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"
#define KEY_2 "000102030405060708090A0B0C0D0E0F101112131415161718191a1b1c1d1e1f"
#define KEY_2_BASE64 "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define PLACE "apps.signing_secret/A1"

static struct secrets keys(const char *text)
{
    struct secrets secrets;
    assert_int_equal(secrets_read(text, &secrets), 0);
    return secrets;
}

static char *seal(const char *keys_text, const char *secret)
{
    const struct secrets secrets = keys(keys_text);
    struct buffer out;
    buffer_init(&out, 4096);
    secrets_seal(&secrets, PLACE, secret, strlen(secret), &out);
    char *text = buffer_take_text(&out);
    assert_non_null(text);
    return text;
}

// Opens a text at a place; 0 when it gave `expected`.
static int opens_as(const char *keys_text, const char *place, const char *text,
                    const char *expected)
{
    const struct secrets secrets = keys(keys_text);
    CLEANUP(buffer_done) struct buffer out;
    buffer_init(&out, 4096);
    int r = secrets_open(&secrets, place, text, &out);
    if (r < 0) {
        assert_int_equal(out.length, 0);
        return r;
    }
    assert_int_equal(out.length, strlen(expected));
    assert_memory_equal(out.data, expected, out.length);
    return 0;
}

static void hex_to_bytes(const char *hex, uint8_t *ret_bytes)
{
    for (size_t i = 0; hex[2 * i] != '\0'; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        ret_bytes[i] = (uint8_t)byte;
    }
}

// Test case 16 of "The Galois/Counter Mode of Operation (GCM)" by McGrew and Viega.
static void the_known_vector_opens(void **state)
{
    static const char place[] = "\xfe\xed\xfa\xce\xde\xad\xbe\xef\xfe\xed\xfa\xce\xde\xad\xbe\xef"
                                "\xab\xad\xda\xd2";
    static const char nonce_text_tag[] =
        "cafebabefacedbaddecaf888"
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
        "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
        "76fc6ece0f4e1768cddf8853bb2d551b";
    static const char plain_hex[] =
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
    const struct secrets secrets = keys(KEY_1);
    uint8_t sealed[88];
    uint8_t plain[60];
    CLEANUP(buffer_done) struct buffer text;
    CLEANUP(buffer_done) struct buffer out;

    (void)state;
    hex_to_bytes(nonce_text_tag, sealed);
    hex_to_bytes(plain_hex, plain);
    buffer_init(&text, 4096);
    buffer_init(&out, 4096);
    buffer_append_text(&text, secrets.keys[0].prefix);
    base64_write_url(sealed, sizeof sealed, &text);
    buffer_append_byte(&text, '\0');
    assert_false(buffer_failed(&text));
    assert_int_equal(secrets_open(&secrets, place, text.data, &out), 0);
    assert_int_equal(out.length, sizeof plain);
    assert_memory_equal(out.data, plain, sizeof plain);
}

static void what_was_sealed_opens(void **state)
{
    static const char *const secrets[] = {"", "s", "s-0123456789", "\x01\xff\x80"};

    (void)state;
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        CLEANUP_FREE char *text = seal(KEY_1, secrets[i]);
        CLEANUP_FREE char *again = seal(KEY_1, secrets[i]);
        assert_true(secrets_is_sealed(text));
        assert_string_not_equal(text, again); // no nonce comes twice
        assert_int_equal(opens_as(KEY_1, PLACE, text, secrets[i]), 0);
    }
}

static void nothing_else_opens(void **state)
{
    CLEANUP_FREE char *text = seal(KEY_1, "a secret");

    (void)state;
    assert_int_equal(opens_as(KEY_2, PLACE, text, ""), -ERROR_REFUSED);
    assert_int_equal(opens_as("", PLACE, text, ""), -ERROR_REFUSED);
    assert_int_equal(opens_as(KEY_1, "apps.signing_secret/A2", text, ""), -ERROR_REFUSED);
    assert_int_equal(opens_as(KEY_1, PLACE, "s-plain", ""), -ERROR_REFUSED);
    assert_false(secrets_is_sealed("s-plain"));
    for (size_t i = 0; i < strlen(text); i++) {
        char before = text[i];
        text[i] = before == 'A' ? 'B' : 'A';
        assert_int_equal(opens_as(KEY_1, PLACE, text, ""), -ERROR_REFUSED);
        text[i] = '\0';
        assert_int_equal(opens_as(KEY_1, PLACE, text, ""), -ERROR_REFUSED);
        text[i] = before;
    }
    assert_int_equal(opens_as(KEY_1, PLACE, text, "a secret"), 0);
}

static void a_text_of_the_other_key_passes_for_none_of_this_one(void **state)
{
    const struct secrets secrets = keys(KEY_2);
    CLEANUP_FREE char *text = seal(KEY_1, "a secret");

    (void)state;
    memcpy(text, secrets.keys[0].prefix, strlen(secrets.keys[0].prefix));
    assert_int_equal(opens_as(KEY_2, PLACE, text, ""), -ERROR_REFUSED);
}

static void while_rotating_both_keys_open_and_the_first_seals(void **state)
{
    CLEANUP_FREE char *old = seal(KEY_1, "old");
    CLEANUP_FREE char *new = seal(KEY_2 "," KEY_1, "new");

    (void)state;
    assert_int_equal(opens_as(KEY_2 "," KEY_1, PLACE, old, "old"), 0);
    assert_int_equal(opens_as(KEY_2 "," KEY_1, PLACE, new, "new"), 0);
    assert_int_equal(opens_as(KEY_2, PLACE, new, "new"), 0);
    assert_int_equal(opens_as(KEY_2_BASE64, PLACE, new, "new"), 0);
    assert_int_equal(opens_as(KEY_1, PLACE, new, ""), -ERROR_REFUSED);
}

static void digests_are_those_of_each_key(void **state)
{
    const struct secrets both = keys(KEY_2 "," KEY_1);
    const struct secrets one = keys(KEY_1);
    char digests[SECRETS_KEYS_MAX][DIGEST_HEX_SIZE];
    char alone[SECRETS_KEYS_MAX][DIGEST_HEX_SIZE];
    char other[SECRETS_KEYS_MAX][DIGEST_HEX_SIZE];

    (void)state;
    assert_int_equal(secrets_digests(&both, "token", 5, digests), 2);
    assert_int_equal(secrets_digests(&one, "token", 5, alone), 1);
    assert_int_equal(secrets_digests(&one, "tokem", 5, other), 1);
    assert_string_equal(digests[1], alone[0]);
    assert_string_not_equal(digests[0], digests[1]);
    assert_string_not_equal(alone[0], other[0]);
}

static void other_keys_are_refused(void **state)
{
    static const char *const bad[] = {
        "x",
        ",",
        KEY_1 ",",
        "," KEY_1,
        KEY_1 "," KEY_2 "," KEY_1,
        KEY_1 "0",
        "g" KEY_1,
        "geffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g",
        " " KEY_2_BASE64,
    };
    struct secrets secrets;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (secrets_read(bad[i], &secrets) >= 0)
            fail_msg("%s is no key", bad[i]);
    assert_int_equal(secrets_read("", &secrets), 0);
    assert_int_equal(secrets.count, 0);
}

// RFC 4648, section 10.
static void base64_is_that_of_the_rfc(void **state)
{
    static const char *const vectors[][2] = {
        {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
        {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xff\xef\xbe", "_---"},
    };
    uint8_t data[16];

    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        CLEANUP(buffer_done) struct buffer out;
        size_t length = strlen(vectors[i][0]);
        buffer_init(&out, 64);
        base64_write_url(vectors[i][0], length, &out);
        buffer_append_byte(&out, '\0');
        assert_string_equal(out.data, vectors[i][1]);
        assert_int_equal(base64_read(out.data, out.length - 1, data, sizeof data), length);
        assert_memory_equal(data, vectors[i][0], length);
    }
    assert_int_equal(base64_read("/+++", 4, data, sizeof data), 3);
    assert_int_equal(base64_read("Zg==", 4, data, 1), 1);
    assert_int_equal(base64_read("Zm8=", 4, data, 2), 2);
}

static void what_is_not_base64_is_refused(void **state)
{
    static const char *const bad[] = {"Z",    "Zg=",  "Zg===", "=",    "====", "Zh",
                                      "Zm9=", "Zm 9", "Zm9v=", "Zm.v", "Zg=a", "Zm9vY"};
    uint8_t data[16];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (base64_read(bad[i], strlen(bad[i]), data, sizeof data) >= 0)
            fail_msg("%s is not base64", bad[i]);
    assert_true(base64_read("Zm9v", 4, data, 2) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_known_vector_opens),
        cmocka_unit_test(what_was_sealed_opens),
        cmocka_unit_test(nothing_else_opens),
        cmocka_unit_test(a_text_of_the_other_key_passes_for_none_of_this_one),
        cmocka_unit_test(while_rotating_both_keys_open_and_the_first_seals),
        cmocka_unit_test(digests_are_those_of_each_key),
        cmocka_unit_test(other_keys_are_refused),
        cmocka_unit_test(base64_is_that_of_the_rfc),
        cmocka_unit_test(what_is_not_base64_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
