// SPDX-License-Identifier: Apache-2.0
// JWTs: signed JSON with claims about a user (RFC 7519), as compact JWS (RFC 7515). Parsed
// strictly, verified by keys that the caller has, never by what the token names or carries. Any
// thread.
#pragma once

#include "base/json.h"
#include "login/jwt_algorithm.h"
#include "login/key_set.h"

enum {
    JWT_BYTES_MAX = 8192,
    JWT_SIGNATURE_MAX = RSA_BITS_MAX / 8,
    JWT_DEPTH_MAX = 16,
    JWT_VALUES_MAX = 1000,
    JWT_AUDIENCES_MAX = 16,
    JWT_KEYS_TRIED_MAX = 4 // for a token without `kid`
};

struct jwt {
    enum jwt_algorithm algorithm; // as the header claims
    char key_id[KEY_ID_MAX + 1];  // "": none
    char text[JWT_BYTES_MAX + 1]; // the token
    size_t signed_length;         // of the text, without the last dot and the signature
    uint8_t signature[JWT_SIGNATURE_MAX];
    size_t signature_length;
    json_t *claims; // an object; not to be believed before jwt_verify()
};

// Whether a token has the look of a JWT rather than of one of Tidings' own.
bool jwt_is_like(const char *token);

// Parses a token without verifying it. Refuses whatever is not exactly a JWS of three parts in
// base64url without padding, with JSON objects without duplicate members, `alg` of the table, no
// `crit`, and a `typ` that is absent or of an ID or access token. `jku`, `jwk`, `x5u`, `x5c` and
// unknown members of the header have no effect. -ERROR_INVALID_TOKEN, -ERROR_MEMORY. Owned by the
// caller.
NODISCARD int jwt_parse(const char *text, size_t length, struct jwt **ret_jwt);

// Verifies the signature with a key of the set that has the token's `kid`, or else no id; for a
// token without `kid` with at most JWT_KEYS_TRIED_MAX keys that suit its algorithm. The algorithm
// must be one of `algorithms`, too. -ERROR_INVALID_TOKEN.
NODISCARD int jwt_verify(const struct jwt *jwt, const struct key_set *keys, unsigned algorithms);

// Whether a set has a key that jwt_verify() would try.
bool jwt_has_key(const struct jwt *jwt, const struct key_set *keys);

// What claims must say.
struct jwt_rules {
    const char *issuer;
    const char *const *audiences; // one of them must be meant
    int audience_count;
    int64_t leeway_s;
};

// Whether `iss` is the issuer, and `aud` has one of the audiences.
bool jwt_is_meant_for(const struct jwt *jwt, const struct jwt_rules *rules);

// Checks `iss`, `aud`, `azp` (must be one of the audiences if `aud` has several), `exp` (required),
// `nbf` and `iat`, at the time `now_s`. -ERROR_TOKEN_EXPIRED: nothing else is wrong.
// -ERROR_INVALID_TOKEN.
NODISCARD int jwt_check(const struct jwt *jwt, const struct jwt_rules *rules, int64_t now_s);

// A moment that the claims give, in whole seconds rounded down. False: there is none, or it is not
// one.
bool jwt_moment(const struct jwt *jwt, const char *claim, int64_t *ret_s);

void jwt_free(struct jwt *jwt);

static inline void jwt_freep(struct jwt **jwt)
{
    jwt_free(*jwt);
}
#define CLEANUP_JWT CLEANUP(jwt_freep)
