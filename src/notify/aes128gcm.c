// SPDX-License-Identifier: Apache-2.0
// RFC 8291: a key agreement with the browser, and one record of AES-128-GCM.
#include "aes128gcm.h"

#include "base/base64.h"
#include "base/error.h"

#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

enum { SECRET = 32, KEY = 16, NONCE = 12, TAG_LENGTH = 16, RECORD_SIZE = 4096 };

static void key_done(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

static void key_context_done(EVP_PKEY_CTX **context)
{
    EVP_PKEY_CTX_free(*context);
}

static void cipher_done(EVP_CIPHER_CTX **context)
{
    EVP_CIPHER_CTX_free(*context);
}

int aes128gcm_receiver_read(const char *p256dh, const char *auth,
                            struct aes128gcm_receiver *ret_receiver)
{
    if (base64_read(p256dh, strlen(p256dh), ret_receiver->point, AES128GCM_POINT) !=
            AES128GCM_POINT ||
        base64_read(auth, strlen(auth), ret_receiver->auth, AES128GCM_AUTH) != AES128GCM_AUTH)
        return -ERROR_INVALID_ARGUMENTS;
    return 0;
}

static EVP_PKEY *point_read(const uint8_t *point)
{
    CLEANUP(key_context_done) EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    char group[] = "prime256v1";
    uint8_t copy[AES128GCM_POINT];
    EVP_PKEY *key = NULL;

    memcpy(copy, point, sizeof copy);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, copy, sizeof copy),
        OSSL_PARAM_construct_end(),
    };
    if (context && EVP_PKEY_fromdata_init(context) == 1)
        (void)EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params);
    ERR_clear_error();
    return key;
}

// ECDH
static int agree(EVP_PKEY *own, const uint8_t *point, uint8_t *ret_secret)
{
    CLEANUP(key_done) EVP_PKEY *other = point_read(point);
    CLEANUP(key_context_done) EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(own, NULL);
    size_t length = SECRET;

    if (!other)
        return -ERROR_INVALID_ARGUMENTS;
    if (!context || EVP_PKEY_derive_init(context) != 1)
        return -ERROR_MEMORY;
    if (EVP_PKEY_derive_set_peer(context, other) == 1 &&
        EVP_PKEY_derive(context, ret_secret, &length) == 1 && length == SECRET)
        return 0;
    ERR_clear_error();
    return -ERROR_INVALID_ARGUMENTS;
}

// HKDF with SHA-256
static bool derive(const uint8_t *salt, const uint8_t *secret, const void *info, size_t info_length,
                   uint8_t *ret_key, size_t length)
{
    CLEANUP(key_context_done) EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);

    return context && EVP_PKEY_derive_init(context) == 1 &&
           EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha256()) == 1 &&
           EVP_PKEY_CTX_set1_hkdf_salt(context, salt, AES128GCM_SALT) == 1 &&
           EVP_PKEY_CTX_set1_hkdf_key(context, secret, SECRET) == 1 &&
           EVP_PKEY_CTX_add1_hkdf_info(context, info, (int)info_length) == 1 &&
           EVP_PKEY_derive(context, ret_key, &length) == 1;
}

struct keys {
    uint8_t secret[SECRET]; // ECDH result, then mixed with the subscription's secret
    uint8_t mixed[SECRET];
    uint8_t key[KEY];
    uint8_t nonce[NONCE];
};

static void keys_wipe(struct keys *keys)
{
    OPENSSL_cleanse(keys, sizeof *keys);
}

// RFC 8291, 3.3 and 3.4
static int keys_make(const struct aes128gcm_receiver *receiver, EVP_PKEY *own,
                     const uint8_t *own_point, const uint8_t *salt, struct keys *ret_keys)
{
    static const char key_info[] = "Content-Encoding: aes128gcm";
    static const char nonce_info[] = "Content-Encoding: nonce";
    static const char mix_info[] = "WebPush: info";
    uint8_t info[sizeof mix_info + 2 * AES128GCM_POINT];

    memcpy(info, mix_info, sizeof mix_info);
    memcpy(info + sizeof mix_info, receiver->point, AES128GCM_POINT);
    memcpy(info + sizeof mix_info + AES128GCM_POINT, own_point, AES128GCM_POINT);
    int r = agree(own, receiver->point, ret_keys->secret);
    if (r < 0)
        return r;
    // The NUL that ends each text is part of it.
    bool done =
        derive(receiver->auth, ret_keys->secret, info, sizeof info, ret_keys->mixed, SECRET) &&
        derive(salt, ret_keys->mixed, key_info, sizeof key_info, ret_keys->key, KEY) &&
        derive(salt, ret_keys->mixed, nonce_info, sizeof nonce_info, ret_keys->nonce, NONCE);
    return done ? 0 : -ERROR_MEMORY;
}

static void header_write(const uint8_t *salt, const uint8_t *own_point, struct buffer *out)
{
    static const uint8_t record_size[] = {0, 0, RECORD_SIZE >> 8, RECORD_SIZE & 255};

    buffer_append(out, salt, AES128GCM_SALT);
    buffer_append(out, record_size, sizeof record_size);
    buffer_append_byte(out, AES128GCM_POINT);
    buffer_append(out, own_point, AES128GCM_POINT);
}

static bool record_write(const struct keys *keys, const void *text, size_t length,
                         struct buffer *out)
{
    static const uint8_t last = 2; // the delimiter of the last record
    CLEANUP(cipher_done) EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    uint8_t *at = (uint8_t *)buffer_reserve(out, length + 1 + TAG_LENGTH);
    int first = 0;
    int second = 0;
    int rest = 0;

    if (!at || !context ||
        EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), NULL, keys->key, keys->nonce) != 1 ||
        EVP_EncryptUpdate(context, at, &first, text, (int)length) != 1 ||
        EVP_EncryptUpdate(context, at + first, &second, &last, 1) != 1 ||
        EVP_EncryptFinal_ex(context, at + first + second, &rest) != 1 ||
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, TAG_LENGTH, at + length + 1) != 1)
        return false;
    out->length += length + 1 + TAG_LENGTH;
    return true;
}

int aes128gcm_encrypt_with(const struct aes128gcm_receiver *receiver, EVP_PKEY *own,
                           const uint8_t *salt, const void *text, size_t length, struct buffer *out)
{
    CLEANUP(keys_wipe) struct keys keys = {0};
    uint8_t point[AES128GCM_POINT];
    size_t point_length = 0;

    if (length > AES128GCM_TEXT_MAX)
        return -ERROR_TOO_LONG;
    if (EVP_PKEY_get_octet_string_param(own, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point,
                                        &point_length) != 1 ||
        point_length != sizeof point)
        return -ERROR_MEMORY;
    int r = keys_make(receiver, own, point, salt, &keys);
    if (r < 0)
        return r;
    header_write(salt, point, out);
    return record_write(&keys, text, length, out) && !buffer_failed(out) ? 0 : -ERROR_MEMORY;
}

int aes128gcm_encrypt(const struct aes128gcm_receiver *receiver, const void *text, size_t length,
                      struct buffer *out)
{
    CLEANUP(key_done) EVP_PKEY *own = EVP_EC_gen("P-256");
    uint8_t salt[AES128GCM_SALT];

    if (!own || RAND_bytes(salt, sizeof salt) != 1)
        return -ERROR_MEMORY;
    return aes128gcm_encrypt_with(receiver, own, salt, text, length, out);
}
