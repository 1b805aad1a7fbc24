// SPDX-License-Identifier: Apache-2.0
// Reads sets of public keys, in PEM or as JWKs, and HMAC secrets.
#include "login/key_set.h"

#include "base/error.h"
#include "base/json.h"
#include "base/private_key.h"
#include "jwk.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

enum { SET_DEPTH_MAX = 8, SET_VALUES_MAX = 5000, GROUP_SIZE = 32 };

static void bio_done(BIO **bio)
{
    BIO_free(*bio);
}

static unsigned curve_algorithms(EVP_PKEY *key)
{
    char group[GROUP_SIZE] = "";
    size_t length = 0;

    if (EVP_PKEY_get_group_name(key, group, sizeof group, &length) != 1)
        return 0;
    if (strcmp(group, "prime256v1") == 0)
        return 1U << JWT_ES256;
    return strcmp(group, "secp384r1") == 0 ? 1U << JWT_ES384 : 0;
}

// 0: the key is not good for any.
static unsigned key_algorithms(EVP_PKEY *key)
{
    int bits = EVP_PKEY_get_bits(key);

    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
        return bits >= RSA_BITS_MIN && bits <= RSA_BITS_MAX ? JWT_ALGORITHMS_RSA : 0;
    case EVP_PKEY_EC:
        return curve_algorithms(key);
    case EVP_PKEY_ED25519:
        return 1U << JWT_EDDSA;
    default:
        return 0;
    }
}

static bool has_key_id(const struct key_set *set, const char *id)
{
    for (int i = 0; i < set->count; i++)
        if (strcmp(set->keys[i].id, id) == 0)
            return true;
    return false;
}

// Moves the key to the set. `narrowed`: the algorithms that it may be used for.
static int key_add(struct key_set *set, EVP_PKEY **key, const char *id, unsigned narrowed,
                   const char **ret_why)
{
    unsigned algorithms = key_algorithms(*key) & narrowed;

    *ret_why = "at most 50 keys";
    if (set->count == KEY_SET_KEYS_MAX)
        return -ERROR_INVALID_KEY;
    *ret_why = "two keys have the same kid";
    if (id[0] != '\0' && has_key_id(set, id))
        return -ERROR_INVALID_KEY;
    *ret_why = "a key must be RSA of 2048 to 8192 bits, P-256, P-384 or Ed25519, for signatures";
    if (algorithms == 0)
        return -ERROR_INVALID_KEY;
    struct verification_key *added = &set->keys[set->count++];
    added->algorithms = algorithms;
    added->public_key = TAKE(*key);
    memcpy(added->id, id, strlen(id) + 1);
    return 0;
}

static int jwk_add(struct key_set *set, const json_t *jwk, const char **ret_why)
{
    CLEANUP_PRIVATE_KEY EVP_PKEY *key = NULL;
    char id[KEY_ID_MAX + 1];
    unsigned algorithms;
    int r = jwk_read(jwk, &key, id, &algorithms, ret_why);

    return r < 0 ? r : key_add(set, &key, id, algorithms, ret_why);
}

static int jwk_set_add(struct key_set *set, const json_t *jwks, enum key_set_strictness strictness,
                       const char **ret_why)
{
    size_t count = json_array_size(jwks);

    *ret_why = "at most 50 keys";
    if (count > KEY_SET_KEYS_MAX)
        return -ERROR_INVALID_KEY;
    for (size_t i = 0; i < count; i++) {
        int r = jwk_add(set, json_array_get(jwks, i), ret_why);
        if (r == -ERROR_MEMORY || (r < 0 && strictness == KEY_SET_STRICT))
            return r;
    }
    return 0;
}

static int json_keys_add(struct key_set *set, const char *text, size_t length,
                         enum key_set_strictness strictness, const char **ret_why)
{
    CLEANUP_JSON json_t *value = NULL;

    *ret_why = "it must be PEM, a JWK or a JWK Set";
    if (json_read(text, length, SET_DEPTH_MAX, SET_VALUES_MAX, &value) < 0 ||
        !json_is_object(value))
        return -ERROR_INVALID_KEY;
    const json_t *jwks = json_object_get(value, "keys");
    if (jwks)
        return jwk_set_add(set, jwks, strictness, ret_why);
    return jwk_add(set, value, ret_why);
}

// Private keys are refused by name, since OpenSSL could make a public key of them.
static int pem_add(struct key_set *set, const char *text, size_t length, const char **ret_why)
{
    CLEANUP(bio_done) BIO *bio = BIO_new_mem_buf(text, (int)length);
    int r = bio ? 0 : -ERROR_MEMORY;

    while (r == 0 && !BIO_eof(bio)) {
        CLEANUP_PRIVATE_KEY EVP_PKEY *key = PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
        if (!key && set->count > 0 && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE)
            break; // blank lines behind the last key
        *ret_why = "PEM must hold public keys (BEGIN PUBLIC KEY)";
        r = key ? key_add(set, &key, "", JWT_ALGORITHMS_ALL, ret_why) : -ERROR_INVALID_KEY;
    }
    ERR_clear_error();
    return r;
}

// Whether there is an armour of anything but public keys: PEM_read_bio_PUBKEY() would skip it.
static bool has_other_armour(const char *text, size_t length)
{
    static const char begin[] = "-----BEGIN ", wanted[] = "-----BEGIN PUBLIC KEY-----";
    const char *end = text + length;
    const char *at = text;

    while ((at = memmem(at, (size_t)(end - at), begin, sizeof begin - 1))) {
        if ((size_t)(end - at) < sizeof wanted - 1 || memcmp(at, wanted, sizeof wanted - 1) != 0)
            return true;
        at += sizeof begin - 1;
    }
    return false;
}

static int keys_add(struct key_set *set, const char *text, size_t length,
                    enum key_set_strictness strictness, const char **ret_why)
{
    bool is_pem = memmem(text, length, "-----BEGIN ", 11) != NULL;

    *ret_why = "at most 64 KiB";
    if (length > KEY_SET_BYTES_MAX)
        return -ERROR_INVALID_KEY;
    *ret_why = "PEM must hold public keys (BEGIN PUBLIC KEY)";
    if (is_pem && has_other_armour(text, length))
        return -ERROR_INVALID_KEY;
    return is_pem ? pem_add(set, text, length, ret_why)
                  : json_keys_add(set, text, length, strictness, ret_why);
}

int key_set_read(const char *text, size_t length, enum key_set_strictness strictness,
                 struct key_set **ret_keys, const char **ret_why)
{
    CLEANUP_KEY_SET struct key_set *set = calloc(1, sizeof *set);

    *ret_why = "";
    if (!set)
        return -ERROR_MEMORY;
    int r = keys_add(set, text, length, strictness, ret_why);
    if (r < 0)
        return r;
    if (set->count == 0) {
        *ret_why = "there is no key in it that can be used";
        return -ERROR_INVALID_KEY;
    }
    *ret_keys = TAKE(set);
    return 0;
}

int key_set_from_secret(const void *secret, size_t length, struct key_set **ret_keys)
{
    if (length < HMAC_SECRET_MIN || length > HMAC_SECRET_MAX)
        return -ERROR_INVALID_KEY;
    CLEANUP_KEY_SET struct key_set *set = calloc(1, sizeof *set);
    uint8_t *copy = set ? malloc(length) : NULL;
    if (!copy)
        return -ERROR_MEMORY;
    memcpy(copy, secret, length);
    set->keys[0] = (struct verification_key){
        .algorithms = JWT_ALGORITHMS_HMAC, .secret = copy, .secret_length = length};
    set->count = 1;
    *ret_keys = TAKE(set);
    return 0;
}

unsigned key_set_algorithms(const struct key_set *keys)
{
    unsigned algorithms = 0;

    for (int i = 0; i < keys->count; i++)
        algorithms |= keys->keys[i].algorithms;
    return algorithms;
}

void key_set_free(struct key_set *keys)
{
    if (!keys)
        return;
    for (int i = 0; i < keys->count; i++) {
        EVP_PKEY_free(keys->keys[i].public_key);
        OPENSSL_cleanse(keys->keys[i].secret, keys->keys[i].secret_length);
        free(keys->keys[i].secret);
    }
    free(keys);
}
