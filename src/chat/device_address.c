// SPDX-License-Identifier: Apache-2.0
// Validates and serializes device addresses, by one table entry per platform and part.
#include "chat/device_address.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"

#include <ctype.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

enum {
    APNS_DIGITS_MIN = 64,
    APNS_DIGITS_MAX = 200,
    FCM_LENGTH_MAX = 4096,
    POINT_LENGTH = 65,
    AUTH_LENGTH = 16,
    PUSHKEY_LENGTH_MAX = 512,
    VALUES_MAX = 8
};

static const char *const names[PUSH_PLATFORM_MAX] = {"apns", "fcm", "webpush", "matrix"};

const char *push_platform_name(enum push_platform platform)
{
    return names[platform];
}

enum push_platform push_platform_find(const char *name)
{
    int i = 0;

    while (i < PUSH_PLATFORM_MAX && strcmp(names[i], name) != 0)
        i++;
    return (enum push_platform)i;
}

static const char *apns_error(const char *text)
{
    size_t length = strlen(text);
    bool is_hex = strspn(text, "0123456789abcdefABCDEF") == length;

    if (is_hex && length % 2 == 0 && length >= APNS_DIGITS_MIN && length <= APNS_DIGITS_MAX)
        return NULL;
    return "must be the device token of APNs, 64 to 200 hexadecimal digits";
}

static const char *fcm_error(const char *text)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:_.-";
    size_t length = strlen(text);

    if (strspn(text, letters) == length && length <= FCM_LENGTH_MAX)
        return NULL;
    return "must be a registration token of FCM, at most 4096 of A-Z, a-z, 0-9, ':', '_', '.', '-'";
}

// Whether the bytes are an uncompressed point on the curve P-256.
static bool point_is_on_p256(const uint8_t *point)
{
    char group[] = "prime256v1";
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)(uintptr_t)point,
                                          POINT_LENGTH),
        OSSL_PARAM_construct_end(),
    };
    bool is_on = context && EVP_PKEY_fromdata_init(context) == 1 &&
                 EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) == 1;

    EVP_PKEY_free(key);
    EVP_PKEY_CTX_free(context);
    return is_on;
}

static const char *p256dh_error(const char *text)
{
    uint8_t point[POINT_LENGTH + 1];
    int length = base64_read(text, strlen(text), point, sizeof point);

    if (length == POINT_LENGTH && point[0] == 4 && point_is_on_p256(point))
        return NULL;
    return "must be a public key on P-256, 65 bytes in base64url";
}

static const char *auth_error(const char *text)
{
    uint8_t secret[AUTH_LENGTH + 1];

    if (base64_read(text, strlen(text), secret, sizeof secret) == AUTH_LENGTH)
        return NULL;
    return "must be 16 bytes in base64url";
}

static const char *pushkey_error(const char *text)
{
    return strlen(text) <= PUSHKEY_LENGTH_MAX ? NULL : "must have at most 512 bytes";
}

static const char *url_error(const char *text)
{
    return strncmp(text, "http", 4) == 0 ? NULL : "must be a URL";
}

static const struct address_part {
    const char *name;
    const char *(*error)(const char *text);
} parts[PUSH_PLATFORM_MAX][DEVICE_PARTS_MAX] = {
    [PUSH_APNS] = {{"push_token", apns_error}},
    [PUSH_FCM] = {{"push_token", fcm_error}},
    [PUSH_WEBPUSH] = {{"endpoint", url_error}, {"p256dh", p256dh_error}, {"auth", auth_error}},
    [PUSH_MATRIX] = {{"url", url_error}, {"pushkey", pushkey_error}},
};

const char *device_part_name(enum push_platform platform, int part)
{
    return part < DEVICE_PARTS_MAX ? parts[platform][part].name : NULL;
}

const char *device_part_error(enum push_platform platform, int part, const char *text)
{
    return parts[platform][part].error(text);
}

// Lower case: hexadecimal digits in either case are the same token.
static void part_write(struct json_writer *w, enum push_platform platform, const char *name,
                       const char *text)
{
    char digits[APNS_DIGITS_MAX + 1];
    size_t length = 0;

    json_key(w, name);
    if (platform != PUSH_APNS) {
        json_text(w, text);
        return;
    }
    for (; text[length] != '\0' && length < APNS_DIGITS_MAX; length++)
        digits[length] = (char)tolower((unsigned char)text[length]);
    json_string_n(w, digits, length);
}

void device_address_write(const struct device_address *address, struct buffer *out)
{
    struct json_writer w = json_writer_to(out);
    const char *name;

    json_open_object(&w);
    for (int i = 0; (name = device_part_name(address->platform, i)); i++)
        part_write(&w, address->platform, name, address->parts[i]);
    json_close_object(&w);
}

int device_address_token(const char *json, size_t length, struct buffer *out)
{
    static const char *const unique[] = {"push_token", "endpoint", "pushkey", "url"};
    CLEANUP_JSON json_t *object = NULL;
    size_t before = out->length;
    int r = json_read(json, length, 1, VALUES_MAX, &object);

    for (size_t i = 0; i < sizeof unique / sizeof unique[0] && r >= 0; i++) {
        const char *value = json_string_value(json_object_get(object, unique[i]));
        if (value && out->length > before)
            buffer_append_byte(out, ' ');
        if (value)
            buffer_append_text(out, value);
    }
    if (r >= 0 && buffer_failed(out))
        return -ERROR_MEMORY;
    return r < 0 || out->length == before ? -ERROR_INVALID_JSON : 0;
}
