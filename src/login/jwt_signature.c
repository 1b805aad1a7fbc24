// SPDX-License-Identifier: Apache-2.0
// Verifies the signatures of JWTs with OpenSSL.
#include "login/jwt.h"

#include "base/error.h"

#include <string.h>

#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>

enum { SCALAR_MAX = 48, DER_MAX = 2 * SCALAR_MAX + 16, ED25519_SIGNATURE = 64 };

static void context_done(EVP_MD_CTX **context)
{
    EVP_MD_CTX_free(*context);
}

static void pair_done(ECDSA_SIG **pair)
{
    ECDSA_SIG_free(*pair);
}

static bool hmac_is_good(const struct jwt *jwt, const struct verification_key *key)
{
    const EVP_MD *digest = EVP_get_digestbyname(jwt_algorithm_digest(jwt->algorithm));
    uint8_t expected[EVP_MAX_MD_SIZE];
    unsigned length = 0;

    return digest &&
           HMAC(digest, key->secret, (int)key->secret_length, (const uint8_t *)jwt->text,
                jwt->signed_length, expected, &length) &&
           jwt->signature_length == length && CRYPTO_memcmp(jwt->signature, expected, length) == 0;
}

// PSS with a salt as long as the digest (RFC 7518, 3.5).
static bool pss_set(EVP_PKEY_CTX *options)
{
    return EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) == 1 &&
           EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) == 1;
}

static bool signature_is_good(const struct jwt *jwt, EVP_PKEY *key, const uint8_t *signature,
                              size_t length)
{
    CLEANUP(context_done) EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *options; // of the context
    bool is_pss = jwt->algorithm >= JWT_PS256 && jwt->algorithm <= JWT_PS512;
    bool is_good = context &&
                   EVP_DigestVerifyInit_ex(context, &options, jwt_algorithm_digest(jwt->algorithm),
                                           NULL, NULL, key, NULL) == 1 &&
                   (!is_pss || pss_set(options)) &&
                   EVP_DigestVerify(context, signature, length, (const uint8_t *)jwt->text,
                                    jwt->signed_length) == 1;

    ERR_clear_error();
    return is_good;
}

// JWS has r and s one behind the other, each as long as the curve's order (RFC 7518, 3.4); OpenSSL
// reads them in DER.
static bool ecdsa_is_good(const struct jwt *jwt, EVP_PKEY *key)
{
    CLEANUP(pair_done) ECDSA_SIG *pair = ECDSA_SIG_new();
    int scalar = jwt->algorithm == JWT_ES256 ? 32 : 48;
    uint8_t der[DER_MAX];
    uint8_t *end = der;

    if (jwt->signature_length != 2 * (size_t)scalar || !pair)
        return false;
    BIGNUM *r = BN_bin2bn(jwt->signature, scalar, NULL);
    BIGNUM *s = BN_bin2bn(jwt->signature + scalar, scalar, NULL);
    if (!r || !s || ECDSA_SIG_set0(pair, r, s) != 1) {
        BN_free(r);
        BN_free(s);
        return false;
    }
    int length = i2d_ECDSA_SIG(pair, NULL);
    if (length <= 0 || length > DER_MAX || i2d_ECDSA_SIG(pair, &end) != length)
        return false;
    return signature_is_good(jwt, key, der, (size_t)length);
}

static bool key_verifies(const struct jwt *jwt, const struct verification_key *key)
{
    if (!key->public_key)
        return hmac_is_good(jwt, key);
    if (jwt->algorithm == JWT_ES256 || jwt->algorithm == JWT_ES384)
        return ecdsa_is_good(jwt, key->public_key);
    size_t length = jwt->algorithm == JWT_EDDSA ? ED25519_SIGNATURE
                                                : (size_t)EVP_PKEY_get_size(key->public_key);
    return jwt->signature_length == length &&
           signature_is_good(jwt, key->public_key, jwt->signature, length);
}

static bool has_id(const struct key_set *keys, const char *id)
{
    for (int i = 0; i < keys->count; i++)
        if (strcmp(keys->keys[i].id, id) == 0)
            return true;
    return false;
}

// Whether to try the key. `id` NULL: a key with any id.
static bool key_suits(const struct verification_key *key, const struct jwt *jwt, const char *id)
{
    return jwt_algorithm_is_in(jwt->algorithm, key->algorithms) &&
           (!id || strcmp(key->id, id) == 0);
}

// The id that a key must have: the token's `kid`, or "" if no key has that, as keys in PEM have
// none. NULL: any, since the token names none.
static const char *id_wanted(const struct jwt *jwt, const struct key_set *keys)
{
    if (jwt->key_id[0] == '\0')
        return NULL;
    return has_id(keys, jwt->key_id) ? jwt->key_id : "";
}

bool jwt_has_key(const struct jwt *jwt, const struct key_set *keys)
{
    const char *id = id_wanted(jwt, keys);

    for (int i = 0; i < keys->count; i++)
        if (key_suits(&keys->keys[i], jwt, id))
            return true;
    return false;
}

int jwt_verify(const struct jwt *jwt, const struct key_set *keys, unsigned algorithms)
{
    const char *id = id_wanted(jwt, keys);
    int tried = 0;

    if (!jwt_algorithm_is_in(jwt->algorithm, algorithms))
        return -ERROR_INVALID_TOKEN;
    for (int i = 0; i < keys->count && tried < JWT_KEYS_TRIED_MAX; i++) {
        if (!key_suits(&keys->keys[i], jwt, id))
            continue;
        tried++;
        if (key_verifies(jwt, &keys->keys[i]))
            return 0;
    }
    return -ERROR_INVALID_TOKEN;
}
