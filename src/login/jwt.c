// SPDX-License-Identifier: Apache-2.0
// Parses JWTs: three parts, each in the one form that base64url has.
#include "login/jwt.h"

#include "base/base64.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct jwt_part {
    const char *text;
    size_t length;
};

bool jwt_is_like(const char *token)
{
    return strncmp(token, "eyJ", 3) == 0; // {"
}

// Two encodings of the same bytes would be two tokens: only one alphabet, no padding.
static bool part_is_base64url(const struct jwt_part *part)
{
    for (size_t i = 0; i < part->length; i++)
        if (memchr("+/=", part->text[i], 3))
            return false;
    return part->length > 0;
}

static bool parts_split(const char *text, size_t length, struct jwt_part ret_parts[3])
{
    for (int i = 0; i < 3; i++) {
        const char *dot = memchr(text, '.', length);
        size_t taken = dot ? (size_t)(dot - text) : length;
        if (!dot != (i == 2))
            return false;
        ret_parts[i] = (struct jwt_part){text, taken};
        if (!part_is_base64url(&ret_parts[i]))
            return false;
        text += taken + !!dot;
        length -= taken + !!dot;
    }
    return true;
}

static int object_read(const struct jwt_part *part, json_t **ret_object)
{
    CLEANUP_JSON json_t *value = NULL;
    uint8_t text[JWT_BYTES_MAX];
    int length = base64_read(part->text, part->length, text, sizeof text);

    if (length <= 0 || text[0] != '{')
        return -ERROR_INVALID_TOKEN;
    int r = json_read((const char *)text, (size_t)length, JWT_DEPTH_MAX, JWT_VALUES_MAX, &value);
    if (r < 0)
        return -ERROR_INVALID_TOKEN;
    *ret_object = TAKE(value);
    return 0;
}

// A token for another purpose, such as a log-out token, may have the same issuer and audience.
static bool type_is_good(const json_t *type)
{
    static const char *const types[] = {"JWT", "at+jwt", "application/at+jwt"};

    if (!type)
        return true;
    for (size_t i = 0; json_is_string(type) && i < sizeof types / sizeof types[0]; i++)
        if (strcasecmp(json_string_value(type), types[i]) == 0)
            return true;
    return false;
}

static bool key_id_read(const json_t *id, char ret_id[KEY_ID_MAX + 1])
{
    if (!id)
        return true;
    size_t length = json_string_length(id);
    if (!json_is_string(id) || length == 0 || length > KEY_ID_MAX)
        return false;
    memcpy(ret_id, json_string_value(id), length + 1);
    return true;
}

static int header_read(const struct jwt_part *part, struct jwt *jwt)
{
    CLEANUP_JSON json_t *header = NULL;
    int r = object_read(part, &header);

    if (r < 0)
        return r;
    const char *name = json_string_value(json_object_get(header, "alg"));
    jwt->algorithm = name ? jwt_algorithm_find(name) : JWT_ALGORITHM_MAX;
    // No extension is understood here, so a token that demands one is refused (RFC 7515, 4.1.11).
    if (jwt->algorithm == JWT_ALGORITHM_MAX || json_object_get(header, "crit") ||
        !type_is_good(json_object_get(header, "typ")) ||
        !key_id_read(json_object_get(header, "kid"), jwt->key_id))
        return -ERROR_INVALID_TOKEN;
    return 0;
}

int jwt_parse(const char *text, size_t length, struct jwt **ret_jwt)
{
    struct jwt_part parts[3];

    if (length > JWT_BYTES_MAX || !parts_split(text, length, parts))
        return -ERROR_INVALID_TOKEN;
    CLEANUP_JWT struct jwt *jwt = calloc(1, sizeof *jwt);
    if (!jwt)
        return -ERROR_MEMORY;
    memcpy(jwt->text, text, length);
    jwt->signed_length = length - parts[2].length - 1;
    int r = header_read(&parts[0], jwt);
    if (r < 0)
        return r;
    r = object_read(&parts[1], &jwt->claims);
    if (r < 0)
        return r;
    r = base64_read(parts[2].text, parts[2].length, jwt->signature, sizeof jwt->signature);
    if (r <= 0)
        return -ERROR_INVALID_TOKEN;
    jwt->signature_length = (size_t)r;
    *ret_jwt = TAKE(jwt);
    return 0;
}

void jwt_free(struct jwt *jwt)
{
    if (!jwt)
        return;
    json_decref(jwt->claims);
    free(jwt);
}
