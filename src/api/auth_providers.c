// SPDX-License-Identifier: Apache-2.0
// admin.auth.providers.*: identity providers whose JWTs log users of the workspace in.
#include "methods.h"

#include "admin_arguments.h"
#include "base/json.h"
#include "login/key_set.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_LENGTH_MAX = 255, CLAIM_LENGTH_MAX = 80, AUDIENCES_MAX = 16 };
enum { JSON_MAX = 16384, ALGORITHMS_SIZE = 128 };
enum { LIFETIME_MAX_S = 365 * 86400, LIFETIME_S = 86400, LEEWAY_MAX_S = 600, LEEWAY_S = 60 };

// What to store of a provider. NULL and empty: absent, and left unchanged by an update.
struct provider_change {
    bool is_new;
    const char *id;
    const char *name;
    const char *kind;
    const char *issuer;
    struct buffer audiences; // JSON
    unsigned allowed;        // algorithms that the keys are good for
    char algorithms[ALGORITHMS_SIZE];
    const char *key_source;
    const char *keys;    // in plain text
    struct buffer rules; // JSON
};

static void change_done(struct provider_change *change)
{
    buffer_done(&change->audiences);
    buffer_done(&change->rules);
}

#define PROVIDER_CHANGE(...) {.audiences = BUFFER(JSON_MAX), .rules = BUFFER(JSON_MAX), __VA_ARGS__}

// Reads a text of limited length; a missing required one is an error.
static bool take_limited(struct invocation *invocation, const char *name, bool is_required,
                         size_t length_max, const char **value)
{
    if (is_required ? !take_text(invocation, name, value)
                    : !take_optional_word(invocation, name, value))
        return false;
    if (!*value || strlen(*value) <= length_max)
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "%s: must be a text of at most %zu bytes", name, length_max);
    return false;
}

static bool take_choice(struct invocation *invocation, const char *name, bool is_required,
                        const char *const choices[2], const char **value)
{
    if (!take_limited(invocation, name, is_required, TEXT_LENGTH_MAX, value))
        return false;
    if (!*value || strcmp(*value, choices[0]) == 0 ||
        (choices[1] && strcmp(*value, choices[1]) == 0))
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS, "%s: must be %s%s%s", name,
                            choices[0], choices[1] ? " or " : "", choices[1] ? choices[1] : "");
    return false;
}

static bool audience_is_good(const json_t *audience)
{
    size_t length = json_string_length(audience);

    return json_is_string(audience) && length >= 1 && length <= TEXT_LENGTH_MAX;
}

// A string, or a JSON array of strings.
static bool take_audience(struct invocation *invocation, struct provider_change *change)
{
    CLEANUP_JSON json_t *audiences = NULL;
    const char *text = request_arg(invocation->request, "audience");

    if (!invocation_has(invocation, "audience") && !change->is_new)
        return true;
    if (text && text[0] != '[') {
        if (!take_text(invocation, "audience", &text))
            return false;
        audiences = json_pack("[s]", text);
    } else if (!take_array(invocation, "audience", AUDIENCES_MAX, &audiences)) {
        return false;
    }
    bool is_good = true;
    for (size_t i = 0; i < json_array_size(audiences); i++)
        is_good &= audience_is_good(json_array_get(audiences, i));
    if (!is_good) {
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                "audience: must be 1 to %d strings of 1 to %d bytes", AUDIENCES_MAX,
                                TEXT_LENGTH_MAX);
        return false;
    }
    CLEANUP_FREE char *json = json_dumps(audiences, JSON_COMPACT);
    if (json)
        buffer_append_text(&change->audiences, json);
    return true;
}

static bool take_secret(struct invocation *invocation, struct provider_change *change)
{
    CLEANUP_KEY_SET struct key_set *keys = NULL;
    const char *secret;

    if (!take_text(invocation, "secret", &secret))
        return false;
    if (key_set_from_secret(secret, strlen(secret), &keys) < 0) {
        invocation_fail_message(invocation, -ERROR_INVALID_KEY,
                                "secret: must be a text of %d to %d bytes", HMAC_SECRET_MIN,
                                HMAC_SECRET_MAX);
        return false;
    }
    change->key_source = "secret";
    change->keys = secret;
    change->allowed = JWT_ALGORITHMS_HMAC;
    return true;
}

// PEM or JSON as text, or a JSON object.
static bool take_keys(struct invocation *invocation, struct provider_change *change)
{
    CLEANUP_KEY_SET struct key_set *keys = NULL;
    const char *text = request_arg(invocation->request, "keys");
    const char *why;
    int r = key_set_read(text, strlen(text), KEY_SET_STRICT, &keys, &why);

    if (r < 0) {
        invocation_fail_message(invocation, r, "keys: %s", why);
        return false;
    }
    change->key_source = "keys";
    change->keys = text;
    change->allowed = key_set_algorithms(keys);
    return true;
}

// Exactly one source of keys; for an update at most one.
static bool take_key_source(struct invocation *invocation, struct provider_change *change)
{
    bool has_secret = invocation_has(invocation, "secret");
    bool has_keys = invocation_has(invocation, "keys");

    if (has_secret + has_keys > 1 || (change->is_new && has_secret + has_keys == 0)) {
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                "secret, keys: one of them is required");
        return false;
    }
    if (has_secret)
        return take_secret(invocation, change);
    return !has_keys || take_keys(invocation, change);
}

static void algorithms_write(unsigned algorithms, char ret_text[ALGORITHMS_SIZE])
{
    size_t length = 0;

    ret_text[0] = '\0';
    for (int i = 0; i < JWT_ALGORITHM_MAX; i++)
        if (jwt_algorithm_is_in((enum jwt_algorithm)i, algorithms))
            length +=
                (size_t)snprintf(ret_text + length, ALGORITHMS_SIZE - length, "%s%s",
                                 length > 0 ? "," : "", jwt_algorithm_name((enum jwt_algorithm)i));
}

// Those that are asked for, or else all that new keys are good for.
static bool take_algorithms(struct invocation *invocation, struct provider_change *change)
{
    char list[ALGORITHMS_SIZE];

    if (!take_list(invocation, "algs", list, sizeof list))
        return false;
    unsigned algorithms;
    bool are_good = jwt_algorithms_parse(list, &algorithms) && (algorithms & ~change->allowed) == 0;
    if (!are_good) {
        char allowed[ALGORITHMS_SIZE];
        algorithms_write(change->allowed, allowed);
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                "algs: the keys are good for %s", allowed);
        return false;
    }
    if (list[0] != '\0' || change->key_source)
        algorithms_write(list[0] != '\0' ? algorithms : change->allowed, change->algorithms);
    return true;
}

static bool take_claims(struct invocation *invocation, const struct provider_change *change,
                        struct json_writer *w)
{
    static const char *const names[] = {"user_claim", "name_claim", "email_claim"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *claim = NULL;
        if (!take_limited(invocation, names[i], false, CLAIM_LENGTH_MAX, &claim))
            return false;
        if (!claim && i == 0 && change->is_new)
            claim = "sub";
        if (claim)
            json_key_string(w, names[i], claim);
    }
    return true;
}

// A number; for a new provider the default.
static bool take_seconds(struct invocation *invocation, const char *name,
                         const struct provider_change *change, int64_t min, int64_t max,
                         int64_t otherwise, struct json_writer *w)
{
    int64_t value = otherwise;

    if (!take_optional_int(invocation, name, -ERROR_INVALID_ARGUMENTS, min, max, &value))
        return false;
    if (change->is_new || invocation_has(invocation, name))
        json_key_int(w, name, value);
    return true;
}

static bool take_rules(struct invocation *invocation, struct provider_change *change)
{
    static const char *const provisions[2] = {"never", "create"};
    struct json_writer w = json_writer_to(&change->rules);
    const char *provision = change->is_new ? provisions[0] : NULL;
    bool updates = false;
    char scopes[SCOPES_MAX + 1];

    json_open_object(&w);
    if (!take_claims(invocation, change, &w) ||
        !take_choice(invocation, "provision", false, provisions, &provision) ||
        !take_optional_bool(invocation, "update_profile", &updates) ||
        !take_seconds(invocation, "max_lifetime_s", change, 1, LIFETIME_MAX_S, LIFETIME_S, &w) ||
        !take_seconds(invocation, "leeway_s", change, 0, LEEWAY_MAX_S, LEEWAY_S, &w) ||
        !take_scopes(invocation, scopes))
        return false;
    if (provision)
        json_key_string(&w, "provision", provision);
    if (change->is_new || invocation_has(invocation, "update_profile"))
        json_key_bool(&w, "update_profile", updates);
    if (change->is_new || scopes[0] != '\0')
        json_key_string(&w, "scopes", scopes);
    json_close_object(&w);
    return true;
}

static bool take_change(struct invocation *invocation, struct provider_change *change)
{
    return take_limited(invocation, "issuer", change->is_new, TEXT_LENGTH_MAX, &change->issuer) &&
           take_audience(invocation, change) && take_key_source(invocation, change) &&
           take_algorithms(invocation, change) && take_rules(invocation, change);
}

static void params_buffer(struct params *params, const struct buffer *text)
{
    if (text->length > 0)
        params_text_n(params, text->data, text->length);
    else
        params_text(params, NULL);
}

// Adds the parameters common to create and update. False: an error was replied.
static bool change_params(struct invocation *invocation, const struct provider_change *change,
                          struct params *params)
{
    CLEANUP(buffer_done) struct buffer sealed = BUFFER(2 * KEY_SET_BYTES_MAX);
    char place[sizeof AUTH_PROVIDER_KEYS_PLACE + ID_SIZE];

    if (change->keys && !invocation_can_encrypt(invocation))
        return false;
    snprintf(place, sizeof place, AUTH_PROVIDER_KEYS_PLACE "%s", change->id);
    if (change->keys)
        secrets_seal(invocation->api->options.secrets, place, change->keys, strlen(change->keys),
                     &sealed);
    if (buffer_failed(&change->rules) || buffer_failed(&change->audiences) ||
        buffer_failed(&sealed)) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return false;
    }
    params_text(params, change->issuer);
    params_buffer(params, &change->audiences);
    params_text(params, change->algorithms[0] != '\0' ? change->algorithms : NULL);
    params_text(params, change->key_source);
    params_buffer(params, &sealed);
    params_text(params, NULL);
    params_buffer(params, &change->rules);
    return true;
}

static const struct statement CREATE = {
    "auth_providers_create",
    "SELECT error, reply FROM auth_providers_create($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"};
static const struct statement FIND = {
    "auth_provider_find", "SELECT id, kind, key_source FROM auth_provider_find($1, $2)"};
static const struct statement UPDATE = {
    "auth_providers_update",
    "SELECT error, reply FROM auth_providers_update($1, $2, $3, $4, $5, $6, $7, $8, $9)"};
static const struct statement LIST = {"auth_providers_list",
                                      "SELECT error, reply FROM auth_providers_list($1)"};
static const struct statement DELETE = {"auth_providers_delete",
                                        "SELECT error, reply FROM auth_providers_delete($1, $2)"};

void admin_auth_providers_create(struct invocation *invocation)
{
    static const char *const kinds[2] = {"jwt"};
    char id[ID_SIZE];
    CLEANUP(change_done)
    struct provider_change change = PROVIDER_CHANGE(.is_new = true, .id = id);
    CLEANUP_PARAMS struct params params = {0};

    id_make('P', id);
    if (!take_resource_name(invocation, &change.name) ||
        !take_choice(invocation, "kind", true, kinds, &change.kind) ||
        !take_change(invocation, &change))
        return;
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, id);
    params_text(&params, change.name);
    params_text(&params, change.kind);
    if (change_params(invocation, &change, &params))
        invocation_change(invocation, &CREATE, &params, false);
}

static void provider_found(struct invocation *invocation, const struct result *result)
{
    CLEANUP(change_done)
    struct provider_change change = PROVIDER_CHANGE(.id = result_text(result, 0, 0));
    CLEANUP_PARAMS struct params params = {0};

    if (result_rows(result) == 0) {
        invocation_fail(invocation, -ERROR_PROVIDER_NOT_FOUND);
        return;
    }
    change.allowed = strcmp(result_text(result, 0, 2), "secret") == 0
                         ? JWT_ALGORITHMS_HMAC
                         : JWT_ALGORITHMS_ALL & ~JWT_ALGORITHMS_HMAC;
    if (!take_change(invocation, &change))
        return;
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, change.id);
    if (change_params(invocation, &change, &params))
        invocation_change(invocation, &UPDATE, &params, false);
}

void admin_auth_providers_update(struct invocation *invocation)
{
    struct params params = {0};

    if (take_resource_params(invocation, &params))
        invocation_query(invocation, STORE_READ, &FIND, &params, provider_found);
}

void admin_auth_providers_list(struct invocation *invocation)
{
    invocation_list_resources(invocation, &LIST);
}

void admin_auth_providers_delete(struct invocation *invocation)
{
    invocation_delete_resource(invocation, &DELETE);
}
