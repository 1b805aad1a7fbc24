// SPDX-License-Identifier: Apache-2.0
// Signs the tokens that authenticate Tidings to providers.
#include "signature.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/private_key.h"

#include <string.h>

#include <openssl/ecdsa.h>
#include <openssl/err.h>

enum { SCALAR_LENGTH = 32, SIGNATURE_MAX = 1024 };

static void context_done(EVP_MD_CTX **context)
{
    EVP_MD_CTX_free(*context);
}

static void pair_done(ECDSA_SIG **pair)
{
    ECDSA_SIG_free(*pair);
}

static int sign(EVP_PKEY *key, const char *text, size_t length, uint8_t *ret_signature,
                size_t *ret_length)
{
    CLEANUP(context_done) EVP_MD_CTX *context = EVP_MD_CTX_new();

    if (!context)
        return -ERROR_MEMORY;
    if (EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
        EVP_DigestSign(context, ret_signature, ret_length, (const uint8_t *)text, length) == 1)
        return 0;
    ERR_clear_error();
    return -ERROR_INVALID_KEY;
}

// OpenSSL returns r and s in DER; JWS concatenates them (RFC 7518, 3.4).
static int pair_write(const uint8_t *der, size_t length, struct buffer *out)
{
    CLEANUP(pair_done) ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &der, (long)length);
    uint8_t raw[2 * SCALAR_LENGTH];

    if (!pair || BN_bn2binpad(ECDSA_SIG_get0_r(pair), raw, SCALAR_LENGTH) < 0 ||
        BN_bn2binpad(ECDSA_SIG_get0_s(pair), raw + SCALAR_LENGTH, SCALAR_LENGTH) < 0)
        return -ERROR_INVALID_KEY;
    base64_write_url(raw, sizeof raw, out);
    return 0;
}

int signature_token_make(enum signature_kind kind, const char *pem, const struct buffer *header,
                         const struct buffer *claims, struct buffer *out)
{
    CLEANUP_PRIVATE_KEY EVP_PKEY *key = private_key_parse(pem);
    int wanted = kind == SIGNATURE_ES256 ? EVP_PKEY_EC : EVP_PKEY_RSA;
    uint8_t signature[SIGNATURE_MAX];
    size_t length = sizeof signature;
    size_t start = out->length;

    if (!key || EVP_PKEY_get_base_id(key) != wanted || EVP_PKEY_get_size(key) > SIGNATURE_MAX)
        return -ERROR_INVALID_KEY;
    base64_write_url(header->data, header->length, out);
    buffer_append_byte(out, '.');
    base64_write_url(claims->data, claims->length, out);
    if (buffer_failed(header) || buffer_failed(claims) || buffer_failed(out))
        return -ERROR_MEMORY;
    int r = sign(key, out->data + start, out->length - start, signature, &length);
    if (r < 0)
        return r;
    buffer_append_byte(out, '.');
    if (kind == SIGNATURE_RS256)
        base64_write_url(signature, length, out);
    else
        r = pair_write(signature, length, out);
    return r < 0 ? r : buffer_failed(out) ? -ERROR_MEMORY : 0;
}
