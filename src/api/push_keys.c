// SPDX-License-Identifier: Apache-2.0
// Validates and creates push providers' keys with OpenSSL.
#include "push_keys.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/private_key.h"

#include <string.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

enum { RSA_BITS_MIN = 2048, GROUP_SIZE = 64, POINT_LENGTH = 65, ACCOUNT_VALUES_MAX = 64 };

static void bio_done(BIO **bio)
{
    BIO_free(*bio);
}

int push_key_check_apns(const char *pem)
{
    CLEANUP_PRIVATE_KEY EVP_PKEY *key = private_key_parse(pem);
    char group[GROUP_SIZE] = "";
    size_t length = 0;

    if (!key || EVP_PKEY_get_base_id(key) != EVP_PKEY_EC ||
        EVP_PKEY_get_group_name(key, group, sizeof group, &length) != 1 ||
        strcmp(group, "prime256v1") != 0)
        return -ERROR_INVALID_KEY;
    return 0;
}

static bool account_key_is_good(const char *pem)
{
    CLEANUP_PRIVATE_KEY EVP_PKEY *key = private_key_parse(pem);

    return key && EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA &&
           EVP_PKEY_get_bits(key) >= RSA_BITS_MIN;
}

// The project id becomes part of each push's URL.
static bool project_is_good(const char *id)
{
    return strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789.:-") == strlen(id);
}

static const char *account_invalid_member(const json_t *account)
{
    static const char *const members[] = {"type", "project_id", "private_key", "client_email",
                                          "token_uri"};

    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (json_string_length(json_object_get(account, members[i])) == 0)
            return members[i];
    if (strcmp(json_string_value(json_object_get(account, "type")), "service_account") != 0)
        return "type";
    if (!project_is_good(json_string_value(json_object_get(account, "project_id"))))
        return "project_id";
    if (strncmp(json_string_value(json_object_get(account, "token_uri")), "https://", 8) != 0)
        return "token_uri";
    return account_key_is_good(json_string_value(json_object_get(account, "private_key")))
               ? NULL
               : "private_key";
}

int push_key_read_account(const char *text, json_t **ret_account, const char **ret_invalid)
{
    CLEANUP_JSON json_t *account = NULL;

    *ret_invalid = "it";
    if (json_read(text, strlen(text), 2, ACCOUNT_VALUES_MAX, &account) < 0 ||
        !json_is_object(account))
        return -ERROR_INVALID_KEY;
    *ret_invalid = account_invalid_member(account);
    if (*ret_invalid)
        return -ERROR_INVALID_KEY;
    *ret_account = TAKE(account);
    return 0;
}

static int pem_write(EVP_PKEY *key, struct buffer *pem)
{
    CLEANUP(bio_done) BIO *bio = BIO_new(BIO_s_mem());
    char *data = NULL;

    if (!bio || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1)
        return -ERROR_MEMORY;
    long length = BIO_get_mem_data(bio, &data);
    buffer_append(pem, data, (size_t)length);
    return buffer_failed(pem) ? -ERROR_MEMORY : 0;
}

int push_key_make_webpush(struct buffer *pem, struct buffer *public_key)
{
    CLEANUP_PRIVATE_KEY EVP_PKEY *key = EVP_EC_gen("P-256");
    uint8_t point[POINT_LENGTH];
    size_t length = 0;

    if (!key ||
        EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point,
                                        &length) != 1 ||
        length != POINT_LENGTH)
        return -ERROR_MEMORY;
    base64_write_url(point, length, public_key);
    return buffer_failed(public_key) ? -ERROR_MEMORY : pem_write(key, pem);
}
