// SPDX-License-Identifier: Apache-2.0
// Verifies a JWT with the keys of its workspace's providers, and lets Postgres decide who logs in.
#include "jwt_login.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "jwt_profile.h"
#include "login/jwt.h"
#include "user_frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// More providers with one issuer and audience are not looked at: the caller can name a workspace.
enum { PROVIDERS_MAX = 100, RULES_VALUES_MAX = 100, RULES_DEPTH_MAX = 2 };

static const struct statement PROVIDERS = {
    "login_providers",
    "SELECT id, audiences, algs, key_source, keys, rules FROM login_providers($1, $2, $3, $4)"};
static const struct statement COMPLETE = {"login_complete",
                                          "SELECT error, workspace, reply, happened, changed FROM "
                                          "login_complete($1, $2, $3::bigint, $4::bigint, $5, $6, "
                                          "$7, $8, $9, $10, $11, $12)"};
enum {
    PROVIDER_ID,
    PROVIDER_AUDIENCES,
    PROVIDER_ALGS,
    PROVIDER_SOURCE,
    PROVIDER_KEYS,
    PROVIDER_RULES
};
enum { COMPLETE_ERROR, COMPLETE_WORKSPACE, COMPLETE_REPLY, COMPLETE_HAPPENED, COMPLETE_CHANGED };

struct jwt_login {
    uint32_t tag;
    struct api *api;
    struct jwt *jwt;
    char digest[DIGEST_HEX_SIZE];
    jwt_login_fn *fn;
    void *arg;
};

// A provider's row, whose keys verified the JWT.
struct login_provider {
    const char *id;
    json_t *audiences;
    json_t *rules;
};

static void provider_done(struct login_provider *provider)
{
    json_decref(provider->audiences);
    json_decref(provider->rules);
}

static void login_end(struct jwt_login *login, const struct jwt_login_outcome *outcome)
{
    metric_add(outcome->r == 0 ? METRIC_LOGINS : METRIC_LOGINS_REFUSED, 1);
    login->fn(login->arg, outcome);
    jwt_free(login->jwt);
    TAGGED_FREE(login);
}

static void login_fail(struct jwt_login *login, int r)
{
    login_end(login, &(struct jwt_login_outcome){.r = r});
}

static int keys_open(const struct jwt_login *login, const struct result *result, int row,
                     struct key_set **ret_keys)
{
    CLEANUP(buffer_done) struct buffer text = BUFFER(KEY_SET_BYTES_MAX);
    const char *id = result_text(result, row, PROVIDER_ID);
    char place[sizeof AUTH_PROVIDER_KEYS_PLACE + ID_SIZE];
    const char *why;

    snprintf(place, sizeof place, AUTH_PROVIDER_KEYS_PLACE "%s", id);
    int r = secrets_open(login->api->options.secrets, place,
                         result_text(result, row, PROVIDER_KEYS), &text);
    if (r < 0) {
        metric_add(METRIC_SECRETS_REFUSED, 1);
        log_write(LOG_ERROR, "login",
                  "cannot decrypt the keys of provider %s: TIDINGS_SECRET_KEY lacks its key", id);
        return r;
    }
    if (strcmp(result_text(result, row, PROVIDER_SOURCE), "secret") == 0)
        return key_set_from_secret(text.data, text.length, ret_keys);
    return key_set_read(text.data, text.length, KEY_SET_STRICT, ret_keys, &why);
}

static bool provider_verifies(const struct jwt_login *login, const struct result *result, int row)
{
    CLEANUP_KEY_SET struct key_set *keys = NULL;
    unsigned algorithms;

    (void)jwt_algorithms_parse(result_text(result, row, PROVIDER_ALGS), &algorithms);
    return keys_open(login, result, row, &keys) == 0 &&
           jwt_verify(login->jwt, keys, algorithms) == 0;
}

// The row of the provider that issued the JWT. -ERROR_INVALID_TOKEN: none did;
// -ERROR_INVALID_ARGUMENTS: it may be of several.
static int provider_find(const struct jwt_login *login, const struct result *result)
{
    int found = -ERROR_INVALID_TOKEN;

    for (int row = 0; row < result_rows(result); row++) {
        if (!provider_verifies(login, result, row))
            continue;
        if (found >= 0)
            return -ERROR_INVALID_ARGUMENTS;
        found = row;
    }
    return found;
}

static int provider_read(const struct result *result, int row, struct login_provider *ret_provider)
{
    ret_provider->id = result_text(result, row, PROVIDER_ID);
    int r = json_read(result_text(result, row, PROVIDER_AUDIENCES),
                      result_length(result, row, PROVIDER_AUDIENCES), RULES_DEPTH_MAX,
                      RULES_VALUES_MAX, &ret_provider->audiences);
    return r < 0 ? r
                 : json_read(result_text(result, row, PROVIDER_RULES),
                             result_length(result, row, PROVIDER_RULES), RULES_DEPTH_MAX,
                             RULES_VALUES_MAX, &ret_provider->rules);
}

static int claims_check(const struct jwt_login *login, const struct login_provider *provider)
{
    const char *audiences[JWT_AUDIENCES_MAX];
    struct jwt_rules rules = {
        .issuer = json_string_value(json_object_get(login->jwt->claims, "iss")),
        .audiences = audiences,
        .leeway_s = json_integer_value(json_object_get(provider->rules, "leeway_s"))};

    for (size_t i = 0; i < json_array_size(provider->audiences) && i < JWT_AUDIENCES_MAX; i++)
        audiences[rules.audience_count++] =
            json_string_value(json_array_get(provider->audiences, i));
    return jwt_check(login->jwt, &rules, clock_wall_us() / 1000000);
}

static void on_complete(void *arg, const struct store_outcome *outcome)
{
    struct jwt_login *login = CAST(jwt_login, arg);
    const struct result *result = outcome->result;
    int r = outcome->r;

    if (r == 0 && result_rows(result) == 0)
        r = -ERROR_INTERNAL;
    else if (r == 0 && !result_is_null(result, 0, COMPLETE_ERROR))
        r = error_from_code(result_text(result, 0, COMPLETE_ERROR));
    if (r == 0 && !result_is_null(result, 0, COMPLETE_HAPPENED))
        user_frame_publish(login->api, result_text(result, 0, COMPLETE_WORKSPACE),
                           result_text(result, 0, COMPLETE_HAPPENED),
                           result_text(result, 0, COMPLETE_CHANGED),
                           result_length(result, 0, COMPLETE_CHANGED));
    login_end(login, &(struct jwt_login_outcome){
                         .r = r,
                         .is_genuine = true,
                         .result = result,
                         .reply = r == 0 ? result_text(result, 0, COMPLETE_REPLY) : NULL});
}

static void moment_add(struct params *params, const struct jwt *jwt, const char *claim)
{
    char number[24];
    int64_t moment_s;

    if (!jwt_moment(jwt, claim, &moment_s)) {
        params_text(params, NULL);
        return;
    }
    snprintf(number, sizeof number, "%lld", (long long)moment_s);
    params_text(params, number);
}

static int login_complete(struct jwt_login *login, const struct login_provider *provider)
{
    CLEANUP_PARAMS struct params params = {0};
    char external_id[JWT_EXTERNAL_ID_SIZE];
    char token_id[ID_SIZE], user_id[ID_SIZE];
    char jwt_digest[DIGEST_HEX_SIZE];

    int r = jwt_profile_external_id(login->jwt, provider->rules, external_id);
    if (r < 0)
        return r;
    id_make('K', token_id);
    id_make('U', user_id);
    digest_sha256_hex(login->jwt->text, strlen(login->jwt->text), jwt_digest);
    params_text(&params, provider->id);
    params_text(&params, external_id);
    moment_add(&params, login->jwt, "iat");
    moment_add(&params, login->jwt, "exp");
    params_text(&params, jwt_digest);
    params_text(&params, token_id);
    params_text(&params, login->digest);
    params_text(&params, user_id);
    r = jwt_profile_add(login->jwt, provider->rules, user_id, &params);
    if (r < 0)
        return r;
    store_change(login->api->options.store, user_id, &COMPLETE, &params, on_complete, login);
    return 0;
}

static int rows_take(struct jwt_login *login, const struct result *result)
{
    CLEANUP(provider_done) struct login_provider provider = {0};
    int row = provider_find(login, result);
    int r = row < 0 ? row : provider_read(result, row, &provider);

    if (r == 0)
        r = claims_check(login, &provider);
    return r < 0 ? r : login_complete(login, &provider);
}

static void on_providers(void *arg, const struct store_outcome *outcome)
{
    struct jwt_login *login = CAST(jwt_login, arg);
    int r = outcome->r < 0 ? outcome->r : rows_take(login, outcome->result);

    if (r < 0)
        login_fail(login, r);
}

static int login_new(struct api *api, const struct jwt_login_options *options, jwt_login_fn *fn,
                     void *arg, struct jwt_login **ret_login)
{
    CLEANUP_JWT struct jwt *jwt = NULL;
    int r = jwt_parse(options->jwt, strlen(options->jwt), &jwt);

    if (r < 0)
        return r;
    struct jwt_login *login = TAGGED_NEW(jwt_login);
    if (!login)
        return -ERROR_MEMORY;
    login->api = api;
    login->jwt = TAKE(jwt);
    memcpy(login->digest, options->digest, sizeof login->digest);
    login->fn = fn;
    login->arg = arg;
    *ret_login = login;
    return 0;
}

// Adds what strings there are in `aud`.
static void audiences_add(const struct jwt *jwt, struct params *params)
{
    const json_t *audience = json_object_get(jwt->claims, "aud");

    params_open_text_array(params);
    if (json_is_string(audience))
        params_element_text(params, json_string_value(audience));
    for (size_t i = 0; i < json_array_size(audience) && i < JWT_AUDIENCES_MAX; i++)
        if (json_is_string(json_array_get(audience, i)))
            params_element_text(params, json_string_value(json_array_get(audience, i)));
    params_close_array(params);
}

void jwt_login(struct api *api, const struct jwt_login_options *options, jwt_login_fn *fn,
               void *arg)
{
    CLEANUP_PARAMS struct params params = {0};
    struct jwt_login *login;
    int r = login_new(api, options, fn, arg, &login);
    const char *issuer =
        r < 0 ? NULL : json_string_value(json_object_get(login->jwt->claims, "iss"));

    if (r < 0) {
        metric_add(METRIC_LOGINS_REFUSED, 1);
        fn(arg, &(struct jwt_login_outcome){.r = r});
        return;
    }
    if (!issuer) {
        login_fail(login, -ERROR_INVALID_TOKEN);
        return;
    }
    params_text(&params, issuer);
    audiences_add(login->jwt, &params);
    params_text(&params, options->workspace);
    params_int(&params, PROVIDERS_MAX);
    store_call(api->options.store, STORE_READ, &PROVIDERS, &params, on_providers, login);
}
