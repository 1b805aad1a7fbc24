// SPDX-License-Identifier: Apache-2.0
// JWTs, and keys to verify them: the first line is the token, the rest a set of keys. What is
// parsed is in the one form that it has; no input is signed.
#include "base/base64.h"
#include "fuzz.h"
#include "login/jwt.h"

static void keys_check(const struct key_set *keys)
{
    assert(keys->count >= 1 && keys->count <= KEY_SET_KEYS_MAX);
    for (int i = 0; i < keys->count; i++) {
        assert(keys->keys[i].public_key && keys->keys[i].algorithms != 0);
        assert((keys->keys[i].algorithms & JWT_ALGORITHMS_HMAC) == 0);
    }
}

// The signature, encoded again, ends the token.
static void form_check(const struct jwt *jwt)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(JWT_BYTES_MAX);
    const char *signature = jwt->text + jwt->signed_length + 1;
    base64_write_url(jwt->signature, jwt->signature_length, &out);
    assert(out.length == strlen(signature) && memcmp(out.data, signature, out.length) == 0);
    assert(jwt->algorithm < JWT_ALGORITHM_MAX && json_is_object(jwt->claims));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const audiences[] = {"a", "b"};
    static const struct jwt_rules rules = {"i", audiences, 2, 60};
    CLEANUP_KEY_SET struct key_set *keys = NULL;
    CLEANUP_JWT struct jwt *jwt = NULL;
    size_t rest;
    size_t length = fuzz_line(data, size, &rest);
    const char *why;
    int64_t moment_s;

    CLEANUP_FREE char *token = fuzz_bytes(data, length);
    CLEANUP_FREE char *text = fuzz_bytes(data + rest, size - rest);
    if (key_set_read(text, size - rest, KEY_SET_LENIENT, &keys, &why) == 0)
        keys_check(keys);
    if (jwt_parse(token, length, &jwt) < 0)
        return 0;
    form_check(jwt);
    if (keys)
        (void)jwt_verify(jwt, keys, JWT_ALGORITHMS_ALL);
    if (jwt_check(jwt, &rules, 1000) == 0)
        assert(jwt_moment(jwt, "exp", &moment_s) && moment_s > 940);
    return 0;
}
