// SPDX-License-Identifier: Apache-2.0
// Limits of JWTs and of keys, at the last value that is good and the first one that is not.
// tests/property/test_jwt.py tries what else can be wrong with a token.
#include "base/base64.h"
#include "base/error.h"
#include "login/jwt.h"

// cmocka needs these four first.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

#define SECRET "0123456789abcdef0123456789abcdef"

enum { NOW_S = 1000000, LEEWAY_S = 60, TEXT_SIZE = 16384 };

static const char *const audiences[] = {"tidings"};
static const struct jwt_rules rules = {"us", audiences, 1, LEEWAY_S};

static void text_add(char text[TEXT_SIZE], const char *more)
{
    size_t length = strlen(text);

    snprintf(text + length, TEXT_SIZE - length, "%s", more);
}

static void token_make(const char *header, const char *claims, char *ret_token)
{
    CLEANUP(buffer_done) struct buffer token = BUFFER(TEXT_SIZE);
    uint8_t signature[EVP_MAX_MD_SIZE];
    unsigned length;

    base64_write_url(header, strlen(header), &token);
    buffer_append_byte(&token, '.');
    base64_write_url(claims, strlen(claims), &token);
    HMAC(EVP_sha256(), SECRET, (int)strlen(SECRET), (const uint8_t *)token.data, token.length,
         signature, &length);
    buffer_append_byte(&token, '.');
    base64_write_url(signature, length, &token);
    CLEANUP_FREE char *text = buffer_take_text(&token);
    assert_non_null(text);
    snprintf(ret_token, TEXT_SIZE, "%s", text);
}

static int verdict_on(const char *header, const char *claims)
{
    CLEANUP_KEY_SET struct key_set *keys = NULL;
    CLEANUP_JWT struct jwt *jwt = NULL;
    char token[TEXT_SIZE];

    token_make(header, claims, token);
    assert_int_equal(key_set_from_secret(SECRET, strlen(SECRET), &keys), 0);
    int r = jwt_parse(token, strlen(token), &jwt);
    if (r == 0)
        r = jwt_verify(jwt, keys, JWT_ALGORITHMS_HMAC);
    return r < 0 ? r : jwt_check(jwt, &rules, NOW_S);
}

// With one claim more.
static int verdict_on_number(const char *members, const char *claim, long number)
{
    char claims[TEXT_SIZE];

    snprintf(claims, sizeof claims, "{%s,\"%s\":%ld}", members, claim, number);
    return verdict_on("{\"alg\":\"HS256\"}", claims);
}

static void test_times(void **state)
{
    static const char timeless[] = "\"iss\":\"us\",\"aud\":\"tidings\"";
    static const char good[] = "\"iss\":\"us\",\"aud\":\"tidings\",\"exp\":2000000";

    (void)state;
    assert_int_equal(verdict_on_number(timeless, "exp", NOW_S - LEEWAY_S + 1), 0);
    assert_int_equal(verdict_on_number(timeless, "exp", NOW_S - LEEWAY_S), -ERROR_TOKEN_EXPIRED);
    assert_int_equal(verdict_on_number(timeless, "exp", 253402300799), 0);
    assert_int_equal(verdict_on_number(timeless, "exp", 253402300800), -ERROR_INVALID_TOKEN);
    assert_int_equal(verdict_on_number(timeless, "exp", -1), -ERROR_INVALID_TOKEN);
    assert_int_equal(verdict_on_number(good, "nbf", NOW_S + LEEWAY_S), 0);
    assert_int_equal(verdict_on_number(good, "nbf", NOW_S + LEEWAY_S + 1), -ERROR_INVALID_TOKEN);
    assert_int_equal(verdict_on_number(good, "iat", NOW_S + LEEWAY_S), 0);
    assert_int_equal(verdict_on_number(good, "iat", NOW_S + LEEWAY_S + 1), -ERROR_INVALID_TOKEN);
}

// An expired token for somebody else is not called expired.
static void test_order(void **state)
{
    (void)state;
    assert_int_equal(verdict_on_number("\"iss\":\"them\",\"aud\":\"tidings\"", "exp", 1),
                     -ERROR_INVALID_TOKEN);
    assert_int_equal(verdict_on_number("\"iss\":\"us\",\"aud\":\"others\"", "exp", 1),
                     -ERROR_INVALID_TOKEN);
}

static int verdict_on_audiences(int count)
{
    char claims[TEXT_SIZE] = "{\"iss\":\"us\",\"azp\":\"tidings\",\"exp\":2000000,\"aud\":[";

    for (int i = 1; i < count; i++)
        text_add(claims, "\"other\",");
    text_add(claims, "\"tidings\"]}");
    return verdict_on("{\"alg\":\"HS256\"}", claims);
}

static void test_audiences(void **state)
{
    (void)state;
    assert_int_equal(verdict_on_audiences(1), 0);
    assert_int_equal(verdict_on_audiences(JWT_AUDIENCES_MAX), 0);
    assert_int_equal(verdict_on_audiences(JWT_AUDIENCES_MAX + 1), -ERROR_INVALID_TOKEN);
}

static int verdict_on_kid(int length)
{
    char header[TEXT_SIZE];

    snprintf(header, sizeof header, "{\"alg\":\"HS256\",\"kid\":\"%0*d\"}", length, 1);
    return verdict_on(header, "{\"iss\":\"us\",\"aud\":\"tidings\",\"exp\":2000000}");
}

static void test_kid(void **state)
{
    (void)state;
    assert_int_equal(verdict_on_kid(KEY_ID_MAX), 0);
    assert_int_equal(verdict_on_kid(KEY_ID_MAX + 1), -ERROR_INVALID_TOKEN);
}

// A token of exactly that length. A part of 4n + 1 letters is impossible, which one claim's length
// meets: the header takes another blank.
static int verdict_on_length(size_t length)
{
    static const char *const headers[] = {"{\"alg\":\"HS256\"}", "{ \"alg\":\"HS256\"}",
                                          "{  \"alg\":\"HS256\"}"};
    char claims[TEXT_SIZE], token[TEXT_SIZE];

    for (int padding = 5900; padding < 6200; padding++)
        for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
            snprintf(claims, sizeof claims,
                     "{\"iss\":\"us\",\"aud\":\"tidings\",\"exp\":2000000,\"x\":\"%0*d\"}", padding,
                     0);
            token_make(headers[i], claims, token);
            if (strlen(token) == length)
                return verdict_on(headers[i], claims);
        }
    fail();
    return 0;
}

static void test_length(void **state)
{
    (void)state;
    assert_int_equal(verdict_on_length(JWT_BYTES_MAX), 0);
    assert_int_equal(verdict_on_length(JWT_BYTES_MAX + 1), -ERROR_INVALID_TOKEN);
}

static void test_secret(void **state)
{
    CLEANUP_KEY_SET struct key_set *shortest = NULL;
    CLEANUP_KEY_SET struct key_set *longest = NULL;
    struct key_set *none;
    static const char secret[HMAC_SECRET_MAX + 1] = "x";

    (void)state;
    assert_int_equal(key_set_from_secret(secret, HMAC_SECRET_MIN - 1, &none), -ERROR_INVALID_KEY);
    assert_int_equal(key_set_from_secret(secret, HMAC_SECRET_MIN, &shortest), 0);
    assert_int_equal(key_set_from_secret(secret, HMAC_SECRET_MAX, &longest), 0);
    assert_int_equal(key_set_from_secret(secret, HMAC_SECRET_MAX + 1, &none), -ERROR_INVALID_KEY);
}

static int keys_read(const char *text, enum key_set_strictness strictness)
{
    CLEANUP_KEY_SET struct key_set *keys = NULL;
    const char *why;
    int r = key_set_read(text, strlen(text), strictness, &keys, &why);

    return r < 0 ? r : keys->count;
}

// From RFC 8037, A.2, with a number as `kid`.
#define ED25519(kid)                                                                               \
    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"" kid "\","                                    \
    "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}"

static int keys_read_many(int count)
{
    char text[TEXT_SIZE] = "{\"keys\":[";

    for (int i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%s{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"%d\","
                 "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}",
                 i > 0 ? "," : "", i);
    text_add(text, "]}");
    return keys_read(text, KEY_SET_LENIENT);
}

static void test_sets(void **state)
{
    static const char mixed[] = "{\"keys\":[" ED25519("a") ",{\"kty\":\"oct\",\"k\":\"AAAA\"}]}";
    static const char twice[] = "{\"keys\":[" ED25519("a") "," ED25519("a") "]}";

    (void)state;
    assert_int_equal(keys_read_many(KEY_SET_KEYS_MAX), KEY_SET_KEYS_MAX);
    assert_int_equal(keys_read_many(KEY_SET_KEYS_MAX + 1), -ERROR_INVALID_KEY);
    assert_int_equal(keys_read_many(0), -ERROR_INVALID_KEY);
    assert_int_equal(keys_read(ED25519("a"), KEY_SET_STRICT), 1);
    assert_int_equal(keys_read(mixed, KEY_SET_LENIENT), 1);
    assert_int_equal(keys_read(mixed, KEY_SET_STRICT), -ERROR_INVALID_KEY);
    assert_int_equal(keys_read(twice, KEY_SET_LENIENT), 1);
    assert_int_equal(keys_read(twice, KEY_SET_STRICT), -ERROR_INVALID_KEY);
}

static void test_unsuitable(void **state)
{
    static const char *const texts[] = {
        "",
        "x",
        "{}",
        "[]",
        "{\"keys\":{}}",
        "{\"keys\":[1]}",
        "{\"kty\":\"oct\",\"k\":\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\"}",
        "{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":\"11qYAYKxCrfVS_"
        "7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcH\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":"
        "\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\",\"use\":\"enc\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":"
        "\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\",\"key_ops\":[\"sign\"]}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":"
        "\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\",\"alg\":\"HS256\"}",
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":"
        "\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\",\"d\":"
        "\"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A\"}",
        // Not on its curve.
        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\","
        "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(keys_read(texts[i], KEY_SET_STRICT), -ERROR_INVALID_KEY);
}

static void key_done(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

// Reads the public key in PEM, and its algorithms.
static int pem_read(EVP_PKEY *key, unsigned *ret_algorithms)
{
    CLEANUP_KEY_SET struct key_set *keys = NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    const char *why;
    char *text;

    assert_int_equal(PEM_write_bio_PUBKEY(bio, key), 1);
    long length = BIO_get_mem_data(bio, &text);
    int r = key_set_read(text, (size_t)length, KEY_SET_STRICT, &keys, &why);
    if (r == 0)
        *ret_algorithms = key_set_algorithms(keys);
    BIO_free(bio);
    return r;
}

static void test_pem(void **state)
{
    CLEANUP(key_done) EVP_PKEY *rsa = EVP_RSA_gen(RSA_BITS_MIN);
    CLEANUP(key_done) EVP_PKEY *weak = EVP_RSA_gen(RSA_BITS_MIN - 8);
    CLEANUP(key_done) EVP_PKEY *p256 = EVP_EC_gen("P-256");
    CLEANUP(key_done) EVP_PKEY *p384 = EVP_EC_gen("P-384");
    CLEANUP(key_done) EVP_PKEY *p521 = EVP_EC_gen("P-521");
    unsigned algorithms;

    (void)state;
    assert_int_equal(pem_read(rsa, &algorithms), 0);
    assert_int_equal(algorithms, JWT_ALGORITHMS_RSA);
    assert_int_equal(pem_read(p256, &algorithms), 0);
    assert_int_equal(algorithms, 1 << JWT_ES256);
    assert_int_equal(pem_read(p384, &algorithms), 0);
    assert_int_equal(algorithms, 1 << JWT_ES384);
    assert_int_equal(pem_read(weak, &algorithms), -ERROR_INVALID_KEY);
    assert_int_equal(pem_read(p521, &algorithms), -ERROR_INVALID_KEY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),  cmocka_unit_test(test_order),
        cmocka_unit_test(test_kid),    cmocka_unit_test(test_audiences),
        cmocka_unit_test(test_length), cmocka_unit_test(test_secret),
        cmocka_unit_test(test_sets),   cmocka_unit_test(test_unsuitable),
        cmocka_unit_test(test_pem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
