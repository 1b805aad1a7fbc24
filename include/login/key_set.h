// SPDX-License-Identifier: Apache-2.0
// The keys that a provider's JWTs are verified with. A key's type decides which algorithms it is
// good for; a token's header decides nothing. Immutable once read, so that any thread may use it.
#pragma once

#include "base/cleanup.h"
#include "login/jwt_algorithm.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/types.h>

enum {
    KEY_SET_KEYS_MAX = 50,
    KEY_SET_BYTES_MAX = 65536,
    KEY_ID_MAX = 128, // bytes of a `kid`
    HMAC_SECRET_MIN = 32,
    HMAC_SECRET_MAX = 1024,
    RSA_BITS_MIN = 2048,
    RSA_BITS_MAX = 8192
};

struct verification_key {
    char id[KEY_ID_MAX + 1]; // its `kid`; "": none
    unsigned algorithms;     // bits of enum jwt_algorithm; never HMAC's together with others
    EVP_PKEY *public_key;    // NULL: an HMAC secret
    uint8_t *secret;
    size_t secret_length;
};

struct key_set {
    struct verification_key keys[KEY_SET_KEYS_MAX];
    int count;
};

// How to take a JWK that cannot be used here: of an unknown type or curve, too short, for
// encryption. An operator's key is refused, among a provider's published keys it is passed over.
enum key_set_strictness { KEY_SET_STRICT, KEY_SET_LENIENT };

// Reads public keys: PEM ("PUBLIC KEY", one or more), a JWK, or a JWK Set. RSA of RSA_BITS_MIN to
// RSA_BITS_MAX bits, P-256, P-384, Ed25519. -ERROR_INVALID_KEY: anything else, private or symmetric
// keys, no usable key at all, more than KEY_SET_KEYS_MAX, two with one `kid`; *ret_why says what,
// as static text. -ERROR_MEMORY. Owned by the caller.
NODISCARD int key_set_read(const char *text, size_t length, enum key_set_strictness strictness,
                           struct key_set **ret_keys, const char **ret_why);

// One HMAC secret, of HMAC_SECRET_MIN to HMAC_SECRET_MAX bytes. -ERROR_INVALID_KEY, -ERROR_MEMORY.
NODISCARD int key_set_from_secret(const void *secret, size_t length, struct key_set **ret_keys);

// The algorithms that at least one of the keys is good for.
unsigned key_set_algorithms(const struct key_set *keys);

void key_set_free(struct key_set *keys);

static inline void key_set_freep(struct key_set **keys)
{
    key_set_free(*keys);
}
#define CLEANUP_KEY_SET CLEANUP(key_set_freep)
