// SPDX-License-Identifier: Apache-2.0
// SHA-256 digests and HMACs, by OpenSSL.
#include "base/digest.h"

#include "base/check.h"

#include <pthread.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

static EVP_MD *sha256;

static void digest_fetch(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    ASSERT(sha256);
}

static void digest_sha256(const void *data, size_t length, uint8_t *ret_digest)
{
    // Fetched once: a lookup by name costs more than hashing a token.
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, digest_fetch);
    int done = EVP_Digest(data, length, ret_digest, NULL, sha256, NULL);
    ASSERT(done == 1);
}

static void hex_write(const uint8_t *digest, char *ret_hex)
{
    static const char hex[] = "0123456789abcdef";
    for (int i = 0; i < DIGEST_LENGTH; i++) {
        *ret_hex++ = hex[digest[i] >> 4];
        *ret_hex++ = hex[digest[i] & 15];
    }
    *ret_hex = '\0';
}

void digest_sha256_hex(const void *data, size_t length, char *ret_hex)
{
    uint8_t digest[DIGEST_LENGTH];
    digest_sha256(data, length, digest);
    hex_write(digest, ret_hex);
}

void digest_hmac_hex(const char *key, const void *data, size_t length, char *ret_hex)
{
    uint8_t digest[DIGEST_LENGTH];
    const void *done = HMAC(EVP_sha256(), key, (int)strlen(key), data, length, digest, NULL);
    ASSERT(done);
    hex_write(digest, ret_hex);
}

bool digest_equal(const void *one, const void *other, size_t length)
{
    return CRYPTO_memcmp(one, other, length) == 0;
}
