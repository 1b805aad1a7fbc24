// SPDX-License-Identifier: Apache-2.0
// Provider tokens: verified with the public keys, kept for as long as providers want it.
#include "../../src/notify/provider_tokens.h"
#include "../../src/notify/signature.h"
#include "base/base64.h"
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

enum { NOW_S = 1800000000, TOKEN_MAX = 4096 };

static EVP_PKEY *ec_key;
static EVP_PKEY *rsa_key;
static char ec_pem[2048];
static char rsa_pem[4096];

static void pem_of(EVP_PKEY *key, char *ret_pem, size_t size)
{
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
    int length = BIO_read(bio, ret_pem, (int)size - 1);
    assert_true(length > 0);
    ret_pem[length] = '\0';
    BIO_free(bio);
}

static int keys_make(void **state)
{
    (void)state;
    ec_key = EVP_EC_gen("P-256");
    rsa_key = EVP_RSA_gen(2048);
    pem_of(ec_key, ec_pem, sizeof ec_pem);
    pem_of(rsa_key, rsa_pem, sizeof rsa_pem);
    return 0;
}

static int keys_free(void **state)
{
    (void)state;
    EVP_PKEY_free(ec_key);
    EVP_PKEY_free(rsa_key);
    return 0;
}

// A part of a token as JSON.
static json_t *part(const char *text, size_t length)
{
    uint8_t bytes[TOKEN_MAX];
    json_t *value = NULL;
    int count = base64_read(text, length, bytes, sizeof bytes);
    assert_true(count > 0);
    assert_int_equal(json_read((const char *)bytes, (size_t)count, 8, 100, &value), 0);
    return value;
}

static json_t *header_of(const char *token)
{
    return part(token, strcspn(token, "."));
}

static json_t *claims_of(const char *token)
{
    const char *claims = strchr(token, '.') + 1;
    return part(claims, strcspn(claims, "."));
}

static bool is_signed(const char *token, EVP_PKEY *key)
{
    uint8_t raw[512];
    uint8_t *signature = raw;
    const char *dot = strrchr(token, '.');
    int length = base64_read(dot + 1, strlen(dot + 1), raw, sizeof raw);
    if (key == ec_key) { // r and s, side by side
        assert_int_equal(length, 64);
        ECDSA_SIG *pair = ECDSA_SIG_new();
        ECDSA_SIG_set0(pair, BN_bin2bn(raw, 32, NULL), BN_bin2bn(raw + 32, 32, NULL));
        signature = NULL;
        length = i2d_ECDSA_SIG(pair, &signature);
        ECDSA_SIG_free(pair);
    }
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key), 1);
    int good = EVP_DigestVerify(context, signature, (size_t)length, (const uint8_t *)token,
                                (size_t)(dot - token));
    EVP_MD_CTX_free(context);
    if (signature != raw)
        OPENSSL_free(signature);
    return good == 1;
}

static void assert_text(const json_t *object, const char *name, const char *text)
{
    assert_string_equal(json_string_value(json_object_get(object, name)), text);
}

static int64_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static struct provider_tokens *made_tokens(void)
{
    struct provider_tokens *tokens = provider_tokens_new();
    assert_non_null(tokens);
    return tokens;
}

static struct notify_push push_of(enum push_platform platform, char *secret)
{
    json_t *app = json_object();
    json_object_set_new(app, "key_id", json_string("ABCDE12345"));
    json_object_set_new(app, "team_id", json_string("TEAM123456"));
    json_object_set_new(app, "subject", json_string("mailto:ops@example.com"));
    return (struct notify_push){.platform = platform, .app = app, .secret = secret};
}

static void apns_tokens_are_signed_and_shared(void **state)
{
    struct notify_push push = push_of(PUSH_APNS, ec_pem);
    struct provider_tokens *tokens = made_tokens();
    const char *token;
    const char *again;

    (void)state;
    assert_int_equal(provider_tokens_apns(tokens, &push, NOW_S, &token), 0);
    assert_true(is_signed(token, ec_key));
    json_t *header = header_of(token);
    json_t *claims = claims_of(token);
    assert_text(header, "alg", "ES256");
    assert_text(header, "kid", "ABCDE12345");
    assert_text(claims, "iss", "TEAM123456");
    assert_int_equal(number(claims, "iat"), NOW_S);
    assert_int_equal(provider_tokens_apns(tokens, &push, NOW_S + 20 * 60, &again), 0);
    assert_ptr_equal(again, token);
    json_decref(header);
    json_decref(claims);
    provider_tokens_free(tokens);
    json_decref(push.app);
}

// Apple: not more often than each 20 minutes, and at least each hour.
static void apns_tokens_are_renewed_in_time(void **state)
{
    struct notify_push push = push_of(PUSH_APNS, ec_pem);
    struct provider_tokens *tokens = made_tokens();
    const char *token;
    int64_t made_s = NOW_S;
    int renewed = 0;

    (void)state;
    for (int64_t now_s = NOW_S; now_s < NOW_S + 6 * 3600; now_s += 60) {
        assert_int_equal(provider_tokens_apns(tokens, &push, now_s, &token), 0);
        json_t *claims = claims_of(token);
        int64_t iat = number(claims, "iat");
        assert_true(now_s - iat < 3600);
        if (iat != made_s) {
            assert_true(iat - made_s >= 20 * 60);
            made_s = iat;
            renewed++;
        }
        json_decref(claims);
    }
    assert_true(renewed >= 6);
    provider_tokens_free(tokens);
    json_decref(push.app);
}

static void vapid_tokens_are_made_out_to_an_origin(void **state)
{
    struct notify_push push = push_of(PUSH_WEBPUSH, ec_pem);
    struct provider_tokens *tokens = made_tokens();
    const char *token;
    const char *other;
    const char *again;

    (void)state;
    assert_int_equal(provider_tokens_vapid(tokens, &push, "https://a.example", NOW_S, &token), 0);
    assert_true(is_signed(token, ec_key));
    json_t *header = header_of(token);
    json_t *claims = claims_of(token);
    assert_text(header, "typ", "JWT");
    assert_text(claims, "aud", "https://a.example");
    assert_text(claims, "sub", "mailto:ops@example.com");
    assert_in_range(number(claims, "exp"), NOW_S + PROVIDER_TOKENS_VAPID_S + 1, NOW_S + 24 * 3600);
    assert_int_equal(provider_tokens_vapid(tokens, &push, "https://b.example", NOW_S, &other), 0);
    assert_string_not_equal(other, token);
    assert_int_equal(provider_tokens_vapid(tokens, &push, "https://a.example", NOW_S + 60, &again),
                     0);
    assert_ptr_equal(again, token);
    json_decref(header);
    json_decref(claims);
    provider_tokens_free(tokens);
    json_decref(push.app);
}

static void keys_of_another_kind_sign_nothing(void **state)
{
    char nonsense[] = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n";
    char *const secrets[] = {rsa_pem, nonsense, NULL};
    struct provider_tokens *tokens = made_tokens();
    const char *token;

    (void)state;
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        struct notify_push push = push_of(PUSH_APNS, secrets[i]);
        assert_int_equal(provider_tokens_apns(tokens, &push, NOW_S, &token), -ERROR_INVALID_KEY);
        json_decref(push.app);
    }
    provider_tokens_free(tokens);
}

static void assertions_are_as_google_wants_them(void **state)
{
    json_t *account =
        json_pack("{ss ss ss ss}", "client_email", "push@demo.example", "token_uri",
                  "https://oauth2.example/token", "private_key", rsa_pem, "private_key_id", "k1");
    struct buffer out = BUFFER(TOKEN_MAX);

    (void)state;
    buffer_append_text(&out, "assertion=");
    assert_int_equal(provider_tokens_google_assertion(account, NOW_S, &out), 0);
    buffer_consume(&out, strlen("assertion="));
    char *token = buffer_take_text(&out);
    assert_true(is_signed(token, rsa_key));
    json_t *header = header_of(token);
    json_t *claims = claims_of(token);
    assert_text(header, "alg", "RS256");
    assert_text(header, "kid", "k1");
    assert_text(claims, "iss", "push@demo.example");
    assert_text(claims, "aud", "https://oauth2.example/token");
    assert_text(claims, "scope", "https://www.googleapis.com/auth/firebase.messaging");
    assert_int_equal(number(claims, "exp") - number(claims, "iat"), 3600);
    json_object_set_new(account, "private_key", json_string(ec_pem));
    assert_int_equal(provider_tokens_google_assertion(account, NOW_S, &out), -ERROR_INVALID_KEY);
    json_decref(header);
    json_decref(claims);
    json_decref(account);
    buffer_done(&out);
    free(token);
}

static void access_tokens_are_kept_until_shortly_before_their_end(void **state)
{
    struct notify_push push = push_of(PUSH_FCM, rsa_pem);
    struct notify_push other = push_of(PUSH_FCM, ec_pem);
    struct provider_tokens *tokens = made_tokens();

    (void)state;
    assert_null(provider_tokens_google(tokens, &push, NOW_S));
    provider_tokens_google_put(tokens, &push, "ya29.x", NOW_S, 3599);
    assert_string_equal(provider_tokens_google(tokens, &push, NOW_S + 3000), "ya29.x");
    assert_null(provider_tokens_google(tokens, &other, NOW_S));
    assert_null(provider_tokens_google(tokens, &push, NOW_S + 3500));
    provider_tokens_google_put(tokens, &push, "ya29.y", NOW_S, 3599);
    provider_tokens_google_forget(tokens, &push);
    assert_null(provider_tokens_google(tokens, &push, NOW_S));
    // Whatever life it has: a push that waits for one can go, or this would ask again for ever.
    const int64_t lives[] = {1, 300, 301, 359, 360, INT64_MAX};
    for (size_t i = 0; i < sizeof lives / sizeof lives[0]; i++) {
        provider_tokens_google_put(tokens, &push, "ya29.z", NOW_S, lives[i]);
        assert_string_equal(provider_tokens_google(tokens, &push, NOW_S + 59), "ya29.z");
    }
    assert_null(provider_tokens_google(tokens, &push, NOW_S + 24 * 3600));
    provider_tokens_free(tokens);
    json_decref(push.app);
    json_decref(other.app);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(apns_tokens_are_signed_and_shared),
        cmocka_unit_test(apns_tokens_are_renewed_in_time),
        cmocka_unit_test(vapid_tokens_are_made_out_to_an_origin),
        cmocka_unit_test(keys_of_another_kind_sign_nothing),
        cmocka_unit_test(assertions_are_as_google_wants_them),
        cmocka_unit_test(access_tokens_are_kept_until_shortly_before_their_end),
    };
    return cmocka_run_group_tests(tests, keys_make, keys_free);
}
