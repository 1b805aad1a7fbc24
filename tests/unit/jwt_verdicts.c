// SPDX-License-Identifier: Apache-2.0
// Gives a verdict on each JWT: for each line of standard input, a JSON object with `token`, `keys`
// or `secret`, `algs`, `issuer`, `audiences` and `now`, it prints "ok" or an error's code.
// tests/property/test_jwt.py compares these verdicts with those of other libraries.
#include "base/error.h"
#include "base/json.h"
#include "login/jwt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEEWAY_S = 60 };

static const char *text_of(const json_t *question, const char *name)
{
    const char *text = json_string_value(json_object_get(question, name));
    return text ? text : "";
}

static int keys_of(const json_t *question, struct key_set **ret_keys)
{
    const char *secret = text_of(question, "secret");
    const char *keys = text_of(question, "keys");
    const char *why;

    return secret[0] != '\0' ? key_set_from_secret(secret, strlen(secret), ret_keys)
                             : key_set_read(keys, strlen(keys), KEY_SET_STRICT, ret_keys, &why);
}

static unsigned algorithms_of(const json_t *question)
{
    const json_t *names = json_object_get(question, "algs");
    unsigned algorithms = 0;

    for (size_t i = 0; i < json_array_size(names); i++)
        algorithms |= 1U << jwt_algorithm_find(json_string_value(json_array_get(names, i)));
    return algorithms;
}

static int verdict(const json_t *question)
{
    CLEANUP_KEY_SET struct key_set *keys = NULL;
    CLEANUP_JWT struct jwt *jwt = NULL;
    const json_t *names = json_object_get(question, "audiences");
    const char *audiences[JWT_AUDIENCES_MAX];
    struct jwt_rules rules = {text_of(question, "issuer"), audiences, 0, LEEWAY_S};

    for (size_t i = 0; i < json_array_size(names) && i < JWT_AUDIENCES_MAX; i++)
        audiences[rules.audience_count++] = json_string_value(json_array_get(names, i));
    int r = keys_of(question, &keys);
    if (r == 0)
        r = jwt_parse(text_of(question, "token"), strlen(text_of(question, "token")), &jwt);
    if (r == 0)
        r = jwt_verify(jwt, keys, algorithms_of(question));
    if (r == 0)
        r = jwt_check(jwt, &rules, json_integer_value(json_object_get(question, "now")));
    return r;
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length;

    while ((length = getline(&line, &size, stdin)) > 0) {
        CLEANUP_JSON json_t *question = json_loadb(line, (size_t)length, 0, NULL);
        int r = question ? verdict(question) : -ERROR_INVALID_JSON;
        puts(r < 0 ? error_code(r) : "ok");
    }
    free(line);
    return 0;
}
