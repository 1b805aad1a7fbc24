// SPDX-License-Identifier: Apache-2.0
// Seals and opens secrets with OpenSSL's AES-256-GCM. Format: "sealed1.<key id>.<base64url of
// nonce, ciphertext and tag>".
#include "base/secrets.h"

#include "base/base64.h"
#include "base/check.h"
#include "base/error.h"
#include "base/id.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

enum { NONCE_LENGTH = 12, TAG_LENGTH = 16, KEY_ID_DIGITS = 8 };

static const char form[] = "sealed1.";

static EVP_CIPHER *aes_256_gcm;

static void cipher_fetch(void)
{
    aes_256_gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    ASSERT(aes_256_gcm);
}

static const EVP_CIPHER *cipher(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, cipher_fetch);
    return aes_256_gcm;
}

// Derives a separate key for each purpose from the operator's key.
static void subkey_make(const uint8_t *key, const char *purpose, uint8_t *ret_subkey)
{
    const void *done = HMAC(EVP_sha256(), key, SECRETS_KEY_LENGTH, (const uint8_t *)purpose,
                            strlen(purpose), ret_subkey, NULL);
    ASSERT(done);
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *found = c == '\0' ? NULL : strchr(digits, c);
    ptrdiff_t value = found ? found - digits : -1;
    return (int)(value > 15 ? value - 6 : value);
}

static bool hex_read(const char *text, uint8_t *ret_key)
{
    for (int i = 0; i < SECRETS_KEY_LENGTH; i++) {
        int high = hex_digit(text[2 * i]);
        int low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret_key[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool key_read(const char *text, size_t length, uint8_t *ret_key)
{
    if (length == 2 * SECRETS_KEY_LENGTH)
        return hex_read(text, ret_key);
    return base64_read(text, length, ret_key, SECRETS_KEY_LENGTH) == SECRETS_KEY_LENGTH;
}

static void prefix_make(const uint8_t *key, char *ret_prefix)
{
    uint8_t id[DIGEST_LENGTH];
    char hex[DIGEST_HEX_SIZE];

    subkey_make(key, "tidings: name of the key", id);
    digest_sha256_hex(id, sizeof id, hex);
    snprintf(ret_prefix, SECRETS_PREFIX_SIZE, "%s%.*s.", form, KEY_ID_DIGITS, hex);
}

int secrets_read(const char *text, struct secrets *ret_secrets)
{
    *ret_secrets = (struct secrets){0};
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        int number = ret_secrets->count;
        if (number == SECRETS_KEYS_MAX || !key_read(text, length, ret_secrets->keys[number].key))
            return -ERROR_INVALID_ARGUMENTS;
        prefix_make(ret_secrets->keys[number].key, ret_secrets->keys[number].prefix);
        ret_secrets->count++;
        text += length;
        if (*text == ',' && *++text == '\0')
            return -ERROR_INVALID_ARGUMENTS;
    }
    return 0;
}

bool secrets_is_sealed(const char *text)
{
    return strncmp(text, form, strlen(form)) == 0;
}

static void context_done(EVP_CIPHER_CTX **context)
{
    EVP_CIPHER_CTX_free(*context);
}

// Writes ciphertext and tag after the nonce.
static bool encrypt(const uint8_t *key, const char *place, const void *data, size_t length,
                    uint8_t *nonce)
{
    CLEANUP(context_done) EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    uint8_t *text = nonce + NONCE_LENGTH;
    int written = 0;

    return context && EVP_EncryptInit_ex2(context, cipher(), key, nonce, NULL) &&
           EVP_EncryptUpdate(context, NULL, &written, (const uint8_t *)place, (int)strlen(place)) &&
           EVP_EncryptUpdate(context, text, &written, data, (int)length) &&
           EVP_EncryptFinal_ex(context, text + length, &written) &&
           EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, TAG_LENGTH, text + length);
}

void secrets_seal(const struct secrets *secrets, const char *place, const void *data, size_t length,
                  struct buffer *out)
{
    size_t sealed_length = NONCE_LENGTH + length + TAG_LENGTH;
    CLEANUP(buffer_done) struct buffer sealed = BUFFER(sealed_length);

    ASSERT(secrets->count > 0);
    uint8_t *nonce = (uint8_t *)buffer_reserve(&sealed, sealed_length);
    if (nonce)
        random_fill(nonce, NONCE_LENGTH);
    if (!nonce || !encrypt(secrets->keys[0].key, place, data, length, nonce)) {
        out->failed = true;
        return;
    }
    buffer_append_text(out, secrets->keys[0].prefix);
    base64_write_url(nonce, sealed_length, out);
}

// Decrypts in place the bytes between nonce and tag.
static bool decrypt(const uint8_t *key, const char *place, uint8_t *sealed, int length)
{
    CLEANUP(context_done) EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    uint8_t *text = sealed + NONCE_LENGTH;
    int text_length = length - NONCE_LENGTH - TAG_LENGTH;
    int written = 0;

    return context && EVP_DecryptInit_ex2(context, cipher(), key, sealed, NULL) &&
           EVP_DecryptUpdate(context, NULL, &written, (const uint8_t *)place, (int)strlen(place)) &&
           EVP_DecryptUpdate(context, text, &written, text, text_length) &&
           EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, TAG_LENGTH, text + text_length) &&
           EVP_DecryptFinal_ex(context, text + text_length, &written);
}

// The index of the key that sealed the text; -1 if it is not configured.
static int key_find(const struct secrets *secrets, const char *text)
{
    for (int i = 0; i < secrets->count; i++)
        if (strncmp(text, secrets->keys[i].prefix, strlen(secrets->keys[i].prefix)) == 0)
            return i;
    return -1;
}

int secrets_open(const struct secrets *secrets, const char *place, const char *text,
                 struct buffer *out)
{
    int number = key_find(secrets, text);

    if (number < 0)
        return -ERROR_REFUSED;
    text += strlen(secrets->keys[number].prefix);
    size_t size = strlen(text);
    CLEANUP_FREE uint8_t *sealed = malloc(size + 1);
    if (!sealed)
        return -ERROR_MEMORY;
    int length = base64_read(text, size, sealed, size);
    if (length < NONCE_LENGTH + TAG_LENGTH ||
        !decrypt(secrets->keys[number].key, place, sealed, length))
        return -ERROR_REFUSED;
    int plain_length = length - NONCE_LENGTH - TAG_LENGTH;
    buffer_append(out, sealed + NONCE_LENGTH, (size_t)plain_length);
    OPENSSL_cleanse(sealed, (size_t)length);
    return buffer_failed(out) ? -ERROR_MEMORY : 0;
}

int secrets_digests(const struct secrets *secrets, const void *data, size_t length,
                    char ret_hex[SECRETS_KEYS_MAX][DIGEST_HEX_SIZE])
{
    for (int i = 0; i < secrets->count; i++) {
        uint8_t subkey[DIGEST_LENGTH];
        char key[DIGEST_HEX_SIZE];
        subkey_make(secrets->keys[i].key, "tidings: digests", subkey);
        digest_sha256_hex(subkey, sizeof subkey, key);
        digest_hmac_hex(key, data, length, ret_hex[i]);
    }
    return secrets->count;
}
