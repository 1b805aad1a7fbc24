// SPDX-License-Identifier: Apache-2.0
// Encryption for Web Push, by the example of RFC 8291, Appendix A.
#include "../../src/notify/aes128gcm.h"
#include "base/base64.h"
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/params.h>

#define TEXT "When I grow up, I want to be a watermelon"
#define BROWSER_PUBLIC                                                                             \
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
#define BROWSER_AUTH "BTBZMqHH6r4Tts7J_aSIgg"
#define OWN_PUBLIC                                                                                 \
    "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"
#define OWN_PRIVATE "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
#define SALT "DGv6ra1nlYgDCS1FRnbzlw"
#define MESSAGE                                                                                    \
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_"                                               \
    "c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6"                                              \
    "TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qul" \
    "cy4a-fN"

static void bytes_of(const char *text, uint8_t *ret_bytes, int length)
{
    assert_int_equal(base64_read(text, strlen(text), ret_bytes, (size_t)length), length);
}

static EVP_PKEY *own_key(void)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    EVP_PKEY *key = NULL;
    char group[] = "prime256v1";
    uint8_t point[AES128GCM_POINT];
    uint8_t number[32];
    bytes_of(OWN_PUBLIC, point, sizeof point);
    bytes_of(OWN_PRIVATE, number, sizeof number);
    for (size_t i = 0; i < sizeof number / 2; i++) { // OpenSSL takes it in the machine's order
        uint8_t byte = number[i];
        number[i] = number[sizeof number - 1 - i];
        number[sizeof number - 1 - i] = byte;
    }
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point),
        OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, number, sizeof number),
        OSSL_PARAM_construct_end(),
    };
    assert_int_equal(EVP_PKEY_fromdata_init(context), 1);
    assert_int_equal(EVP_PKEY_fromdata(context, &key, EVP_PKEY_KEYPAIR, params), 1);
    EVP_PKEY_CTX_free(context);
    return key;
}

static struct aes128gcm_receiver browser(void)
{
    struct aes128gcm_receiver receiver;
    assert_int_equal(aes128gcm_receiver_read(BROWSER_PUBLIC, BROWSER_AUTH, &receiver), 0);
    return receiver;
}

static void it_is_the_example_of_the_rfc(void **state)
{
    const struct aes128gcm_receiver receiver = browser();
    uint8_t salt[AES128GCM_SALT];
    struct buffer out = BUFFER(4096);
    struct buffer text = BUFFER(4096);
    EVP_PKEY *own = own_key();

    (void)state;
    bytes_of(SALT, salt, sizeof salt);
    assert_int_equal(aes128gcm_encrypt_with(&receiver, own, salt, TEXT, strlen(TEXT), &out), 0);
    base64_write_url(out.data, out.length, &text);
    assert_int_equal(text.length, strlen(MESSAGE));
    assert_memory_equal(text.data, MESSAGE, text.length);
    EVP_PKEY_free(own);
    buffer_done(&out);
    buffer_done(&text);
}

static void each_message_has_its_own_key_and_salt(void **state)
{
    const struct aes128gcm_receiver receiver = browser();
    struct buffer one = BUFFER(4096);
    struct buffer other = BUFFER(4096);

    (void)state;
    assert_int_equal(aes128gcm_encrypt(&receiver, TEXT, strlen(TEXT), &one), 0);
    assert_int_equal(aes128gcm_encrypt(&receiver, TEXT, strlen(TEXT), &other), 0);
    assert_int_equal(one.length, other.length);
    assert_memory_not_equal(one.data, other.data, AES128GCM_SALT);
    assert_memory_not_equal(one.data + 21, other.data + 21, AES128GCM_POINT);
    buffer_done(&one);
    buffer_done(&other);
}

static void a_message_has_4096_bytes_at_most(void **state)
{
    static char text[AES128GCM_TEXT_MAX + 1];
    const struct aes128gcm_receiver receiver = browser();
    struct buffer out = BUFFER(8192);

    (void)state;
    assert_int_equal(aes128gcm_encrypt(&receiver, text, AES128GCM_TEXT_MAX, &out), 0);
    assert_int_equal(out.length, 4096);
    assert_int_equal(aes128gcm_encrypt(&receiver, text, AES128GCM_TEXT_MAX + 1, &out),
                     -ERROR_TOO_LONG);
    buffer_done(&out);
}

static void bad_receivers_are_refused(void **state)
{
    struct aes128gcm_receiver receiver;
    struct buffer out = BUFFER(4096);

    (void)state;
    assert_int_equal(aes128gcm_receiver_read("BCVx", BROWSER_AUTH, &receiver),
                     -ERROR_INVALID_ARGUMENTS);
    assert_int_equal(aes128gcm_receiver_read(BROWSER_PUBLIC, "BTBZ", &receiver),
                     -ERROR_INVALID_ARGUMENTS);
    receiver = browser();
    receiver.point[64] ^= 1; // no point of the curve
    assert_int_equal(aes128gcm_encrypt(&receiver, TEXT, strlen(TEXT), &out),
                     -ERROR_INVALID_ARGUMENTS);
    buffer_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_example_of_the_rfc),
        cmocka_unit_test(each_message_has_its_own_key_and_salt),
        cmocka_unit_test(a_message_has_4096_bytes_at_most),
        cmocka_unit_test(bad_receivers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
