// SPDX-License-Identifier: Apache-2.0
// Makes OpenSSL's keys of JWKs (RFC 7518, 6 and RFC 8037, 2).
#include "jwk.h"

#include "base/base64.h"
#include "base/error.h"

#include <string.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

enum { MODULUS_MAX = RSA_BITS_MAX / 8, EXPONENT_MAX = 8, ED25519_LENGTH = 32 };
enum { COORDINATE_MAX = 48, POINT_MAX = 1 + 2 * COORDINATE_MAX };

static void builder_done(OSSL_PARAM_BLD **builder)
{
    OSSL_PARAM_BLD_free(*builder);
}

static void params_freep(OSSL_PARAM **params)
{
    OSSL_PARAM_free(*params);
}

static void maker_done(EVP_PKEY_CTX **maker)
{
    EVP_PKEY_CTX_free(*maker);
}

static void number_done(BIGNUM **number)
{
    BN_free(*number);
}

// A member in base64url, of at most `size` bytes; their number, or -ERROR_INVALID_KEY.
static int member_read(const json_t *jwk, const char *name, uint8_t *ret_data, size_t size)
{
    const char *text = json_string_value(json_object_get(jwk, name));

    if (!text || strpbrk(text, "+/="))
        return -ERROR_INVALID_KEY;
    int length = base64_read(text, strlen(text), ret_data, size);
    return length > 0 ? length : -ERROR_INVALID_KEY;
}

static int key_make(const char *type, OSSL_PARAM_BLD *builder, EVP_PKEY **ret_key)
{
    CLEANUP(params_freep) OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    CLEANUP(maker_done) EVP_PKEY_CTX *maker = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);

    if (!params || !maker)
        return -ERROR_MEMORY;
    // Checks that a point is on its curve.
    if (EVP_PKEY_fromdata_init(maker) != 1 ||
        EVP_PKEY_fromdata(maker, ret_key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        return -ERROR_INVALID_KEY;
    return 0;
}

static int rsa_read(const json_t *jwk, EVP_PKEY **ret_key)
{
    uint8_t modulus[MODULUS_MAX], exponent[EXPONENT_MAX];
    int modulus_length = member_read(jwk, "n", modulus, sizeof modulus);
    int exponent_length = member_read(jwk, "e", exponent, sizeof exponent);

    if (modulus_length < 0 || exponent_length < 0)
        return -ERROR_INVALID_KEY;
    CLEANUP(number_done) BIGNUM *n = BN_bin2bn(modulus, modulus_length, NULL);
    CLEANUP(number_done) BIGNUM *e = BN_bin2bn(exponent, exponent_length, NULL);
    CLEANUP(builder_done) OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (!n || !e || !builder || OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) != 1 ||
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e) != 1)
        return -ERROR_MEMORY;
    // With the exponent 1, every text would be its own signature.
    if (!BN_is_odd(n) || !BN_is_odd(e) || BN_is_one(e))
        return -ERROR_INVALID_KEY;
    return key_make("RSA", builder, ret_key);
}

// The length of a coordinate on the curve, and OpenSSL's name of the curve; 0: it is not ours.
static int curve_find(const json_t *jwk, const char **ret_group)
{
    const char *curve = json_string_value(json_object_get(jwk, "crv"));

    if (!curve)
        return 0;
    *ret_group = strcmp(curve, "P-256") == 0 ? "prime256v1" : "secp384r1";
    if (strcmp(curve, "P-256") == 0)
        return 32;
    return strcmp(curve, "P-384") == 0 ? 48 : 0;
}

static int ec_read(const json_t *jwk, EVP_PKEY **ret_key)
{
    const char *group;
    uint8_t point[POINT_MAX] = {4}; // uncompressed
    int length = curve_find(jwk, &group);

    if (length == 0 || member_read(jwk, "x", point + 1, (size_t)length) != length ||
        member_read(jwk, "y", point + 1 + length, (size_t)length) != length)
        return -ERROR_INVALID_KEY;
    CLEANUP(builder_done) OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (!builder ||
        OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, group, 0) != 1 ||
        OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point,
                                         1 + 2 * (size_t)length) != 1)
        return -ERROR_MEMORY;
    return key_make("EC", builder, ret_key);
}

static int okp_read(const json_t *jwk, EVP_PKEY **ret_key)
{
    const char *curve = json_string_value(json_object_get(jwk, "crv"));
    uint8_t point[ED25519_LENGTH];

    if (!curve || strcmp(curve, "Ed25519") != 0 ||
        member_read(jwk, "x", point, sizeof point) != ED25519_LENGTH)
        return -ERROR_INVALID_KEY;
    *ret_key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, point, sizeof point);
    return *ret_key ? 0 : -ERROR_INVALID_KEY;
}

static int public_key_read(const json_t *jwk, EVP_PKEY **ret_key)
{
    const char *type = json_string_value(json_object_get(jwk, "kty"));
    int r = -ERROR_INVALID_KEY;

    if (type && strcmp(type, "RSA") == 0)
        r = rsa_read(jwk, ret_key);
    else if (type && strcmp(type, "EC") == 0)
        r = ec_read(jwk, ret_key);
    else if (type && strcmp(type, "OKP") == 0)
        r = okp_read(jwk, ret_key);
    ERR_clear_error();
    return r;
}

// Whether `use` and `key_ops`, where given, allow to verify signatures.
static bool is_for_signatures(const json_t *jwk)
{
    const json_t *use = json_object_get(jwk, "use");
    const json_t *operations = json_object_get(jwk, "key_ops");
    bool verifies = !operations;

    if (use && (!json_is_string(use) || strcmp(json_string_value(use), "sig") != 0))
        return false;
    for (size_t i = 0; i < json_array_size(operations); i++) {
        const char *operation = json_string_value(json_array_get(operations, i));
        verifies |= operation && strcmp(operation, "verify") == 0;
    }
    return verifies;
}

static bool key_id_read(const json_t *jwk, char *ret_id)
{
    const json_t *id = json_object_get(jwk, "kid");

    ret_id[0] = '\0';
    if (!id)
        return true;
    if (!json_is_string(id) || json_string_length(id) > KEY_ID_MAX)
        return false;
    memcpy(ret_id, json_string_value(id), json_string_length(id) + 1);
    return true;
}

static bool algorithms_read(const json_t *jwk, unsigned *ret_algorithms)
{
    const json_t *name = json_object_get(jwk, "alg");

    *ret_algorithms = JWT_ALGORITHMS_ALL;
    if (!name)
        return true;
    enum jwt_algorithm algorithm =
        json_is_string(name) ? jwt_algorithm_find(json_string_value(name)) : JWT_ALGORITHM_MAX;
    *ret_algorithms = 1U << algorithm;
    return algorithm < JWT_ALGORITHM_MAX;
}

int jwk_read(const json_t *jwk, EVP_PKEY **ret_key, char *ret_id, unsigned *ret_algorithms,
             const char **ret_why)
{
    *ret_why = "a JWK must be a public key, not a private or symmetric one";
    if (json_object_get(jwk, "d") || json_object_get(jwk, "k"))
        return -ERROR_INVALID_KEY;
    *ret_why = "a JWK must be for signatures (use, key_ops, alg)";
    if (!is_for_signatures(jwk) || !algorithms_read(jwk, ret_algorithms))
        return -ERROR_INVALID_KEY;
    *ret_why = "a kid must be a text of at most 128 bytes";
    if (!key_id_read(jwk, ret_id))
        return -ERROR_INVALID_KEY;
    *ret_why = "a JWK must be RSA of 2048 to 8192 bits, P-256, P-384 or Ed25519";
    return public_key_read(jwk, ret_key);
}
