// SPDX-License-Identifier: Apache-2.0
// admin.*: workspaces, users, tokens, apps. Secrets are generated here, shown once, and stored as
// digests.
#include "methods.h"

#include "admin_arguments.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/id.h"
#include "callers_url.h"
#include "chat/callback.h"
#include "chat/names.h"
#include "workspace_frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EVENTS_SIZE = 512, // the size of an actor's scopes
    SECRET_MAX = 1024,
    SIGNING_SECRET_MIN = 16
};
#define SECRET_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
#define EXPIRES_MAX (100LL * 365 * 86400)

// A new token, until it is stored.
struct new_token {
    uint32_t tag;
    char token[TOKEN_SIZE];
    char id[ID_SIZE];
    char user_id[ID_SIZE];
    char app_id[ID_SIZE];    // for an app's token
    char secret[TOKEN_SIZE]; // likewise
};

static struct new_token *token_prepare(struct invocation *invocation, const char *prefix,
                                       char *ret_digest)
{
    struct new_token *token = TAGGED_NEW(new_token);

    if (!token) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return NULL;
    }
    invocation->state = token;
    request_set_secret(invocation->request);
    token_make(prefix, token->token);
    id_make('K', token->id);
    digest_sha256_hex(token->token, strlen(token->token), ret_digest);
    return token;
}

// Turns the prefix "xoxp" of a user's token into "xoxb" for a bot's.
static void token_make_bots(char *token)
{
    token[3] = 'b';
}

// Writes the members of a JSON object built by Postgres.
static void members_write(struct json_writer *w, const struct result *result, int column)
{
    buffer_append_byte(w->out, ',');
    buffer_append(w->out, result_text(result, 0, column) + 1, result_length(result, 0, column) - 2);
}

static const struct statement WORKSPACE_CREATE = {
    "workspaces_create", "SELECT error, reply FROM workspaces_create($1, $2, $3, $4, $5, $6)"};

static void workspace_answer(struct invocation *invocation, const struct result *result)
{
    const struct new_token *token = CAST(new_token, invocation->state);

    if (!invocation_succeeded(invocation, result))
        return;
    struct json_writer *w = invocation_open(invocation);
    members_write(w, result, 1);
    json_key(w, "admin");
    json_open_object(w);
    json_key_string(w, "user_id", token->user_id);
    json_key_string(w, "token", token->token);
    json_close_object(w);
    invocation_close(invocation);
}

static bool take_domain(struct invocation *invocation, const char **ret_domain)
{
    if (!take_label(invocation, "domain", ret_domain))
        return false;
    if (strspn(*ret_domain, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(*ret_domain))
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "domain: must be lower-case letters, digits and '-'");
    return false;
}

void admin_workspaces_create(struct invocation *invocation)
{
    struct params params = {0};
    char digest[DIGEST_HEX_SIZE];
    char workspace_id[ID_SIZE];
    const char *name;
    const char *domain;

    if (!take_label(invocation, "name", &name) || !take_domain(invocation, &domain))
        return;
    struct new_token *token = token_prepare(invocation, "xoxp", digest);
    if (!token)
        return;
    id_make('T', workspace_id);
    id_make('U', token->user_id);
    params_text(&params, workspace_id);
    params_text(&params, token->user_id);
    params_text(&params, token->id);
    params_text(&params, digest);
    params_text(&params, name);
    params_text(&params, domain);
    invocation_query(invocation, STORE_WRITE, &WORKSPACE_CREATE, &params, workspace_answer);
}

static const struct statement USER_CREATE = {
    "users_create",
    "SELECT error, reply, changed FROM users_create($1, $2, $3, $4, $5, $6, $7, $8)"};

void admin_users_create(struct invocation *invocation)
{
    struct params params = {0};
    char user_id[ID_SIZE];
    char bot_id[ID_SIZE];
    const char *name;
    const char *real_name = NULL;
    const char *email = NULL;
    bool is_admin = false;
    bool is_bot = false;

    if (!take_user_name(invocation, &name) ||
        !take_optional_label(invocation, "real_name", &real_name) ||
        !take_optional_label(invocation, "email", &email) ||
        !take_optional_bool(invocation, "is_admin", &is_admin) ||
        !take_optional_bool(invocation, "is_bot", &is_bot))
        return;
    id_make('U', user_id);
    id_make('B', bot_id);
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, user_id);
    params_text(&params, is_bot ? bot_id : NULL);
    params_name(&params, name);
    params_text(&params, real_name);
    params_text(&params, email);
    params_bool(&params, is_admin);
    invocation->done_fn = workspace_user_created;
    invocation_change(invocation, &USER_CREATE, &params, false);
}

static const struct statement SET_ACTIVE = {
    "users_set_active", "SELECT error, reply, changed, $2::text FROM users_set_active($1, $2, $3)"};

void admin_users_set_active(struct invocation *invocation)
{
    struct params params = {0};
    const char *user_id;
    const char *text;
    bool active = false;

    if (!take_user(invocation, "user_id", &user_id) || !take_text(invocation, "active", &text) ||
        !take_optional_bool(invocation, "active", &active))
        return;
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, user_id);
    params_bool(&params, active);
    invocation->done_fn = workspace_user_changed;
    invocation_change(invocation, &SET_ACTIVE, &params, false);
}

static const struct statement TOKEN_CREATE = {
    "tokens_create", "SELECT error, type, expires_at FROM tokens_create($1, $2, $3, $4, $5, $6, "
                     "$7, NULLIF($8, 0), NULLIF($9, 0)::integer)"};

static void token_answer(struct invocation *invocation, const struct result *result)
{
    struct new_token *token = CAST(new_token, invocation->state);

    if (!invocation_succeeded(invocation, result))
        return;
    struct json_writer *w = invocation_open(invocation);
    if (strcmp(result_text(result, 0, 1), "bot") == 0)
        token_make_bots(token->token);
    json_key_string(w, "token", token->token);
    json_key_string(w, "token_id", token->id);
    json_key_string(w, "type", result_text(result, 0, 1));
    if (!result_is_null(result, 0, 2))
        json_key_int(w, "expires_at", result_int(result, 0, 2));
    invocation_close(invocation);
}

static bool take_type(struct invocation *invocation, const char **ret_type)
{
    if (!take_optional_word(invocation, "type", ret_type))
        return false;
    if (!*ret_type || strcmp(*ret_type, "user") == 0 || strcmp(*ret_type, "bot") == 0)
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS, "type: must be user or bot");
    return false;
}

void admin_tokens_create(struct invocation *invocation)
{
    struct params params = {0};
    char digest[DIGEST_HEX_SIZE];
    char bot_digest[DIGEST_HEX_SIZE];
    char bot_token[TOKEN_SIZE];
    const char *user_id;
    const char *type = NULL;
    char scopes[SCOPES_MAX + 1];
    int64_t expires_in = 0;
    int64_t rate_limit = 0;

    if (!take_user(invocation, "user_id", &user_id) || !take_type(invocation, &type) ||
        !take_scopes(invocation, scopes) ||
        !take_optional_int(invocation, "expires_in", -ERROR_INVALID_ARGUMENTS, 1, EXPIRES_MAX,
                           &expires_in) ||
        !take_optional_int(invocation, "rate_limit", -ERROR_INVALID_ARGUMENTS, 1, 1000000000,
                           &rate_limit))
        return;
    struct new_token *token = token_prepare(invocation, "xoxp", digest);
    if (!token)
        return;
    memcpy(bot_token, token->token, sizeof bot_token);
    token_make_bots(bot_token);
    digest_sha256_hex(bot_token, strlen(bot_token), bot_digest);
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, user_id);
    params_text(&params, token->id);
    params_text(&params, digest);
    params_text(&params, bot_digest);
    params_text(&params, type);
    params_text(&params, scopes);
    params_int(&params, expires_in); // 0: never
    params_int(&params, rate_limit); // 0: the setting's
    invocation_query(invocation, STORE_WRITE, &TOKEN_CREATE, &params, token_answer);
}

static const struct statement TOKEN_REVOKE = {
    "tokens_revoke", "SELECT error, reply, id FROM tokens_revoke($1, $2, $3)"};

static void token_revoked(struct invocation *invocation, const struct result *result)
{
    workspace_session_changed(invocation, result_text(result, 0, 2));
}

// Revokes the caller's own token, to log out.
void auth_revoke(struct invocation *invocation)
{
    struct params params = {0};
    bool test = false;

    if (!take_optional_bool(invocation, "test", &test))
        return;
    if (test) {
        json_key_bool(invocation_open(invocation), "revoked", false);
        invocation_close(invocation);
        return;
    }
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, invocation->actor->token_id);
    params_text(&params, NULL);
    invocation->done_fn = token_revoked;
    invocation_change(invocation, &TOKEN_REVOKE, &params, false);
}

void admin_tokens_revoke(struct invocation *invocation)
{
    struct params params = {0};
    char digest[DIGEST_HEX_SIZE];
    const char *token_id = NULL;
    const char *token = NULL;

    if (!take_optional_word(invocation, "token_id", &token_id) ||
        !take_optional_word(invocation, "revoke_token", &token))
        return;
    if (!token_id && !token) {
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                "missing required field: token_id or revoke_token");
        return;
    }
    if (token)
        digest_sha256_hex(token, strlen(token), digest);
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, token_id);
    params_text(&params, token ? digest : NULL);
    invocation->done_fn = token_revoked;
    invocation_change(invocation, &TOKEN_REVOKE, &params, false);
}

static const struct statement REVOKE_TOKENS = {
    "users_revoke_tokens", "SELECT error, reply, id FROM users_revoke_tokens($1, $2, $3)"};

// By default all that were issued until now, so also those of this second.
void admin_users_revoke_tokens(struct invocation *invocation)
{
    struct params params = {0};
    const char *user_id;
    int64_t next_s = clock_wall_us() / 1000000 + 1;
    int64_t issued_before = next_s;

    if (!take_user(invocation, "user_id", &user_id) ||
        !take_optional_int(invocation, "issued_before", -ERROR_INVALID_ARGUMENTS, 0, next_s,
                           &issued_before))
        return;
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, user_id);
    params_int(&params, issued_before);
    invocation->done_fn = token_revoked;
    invocation_change(invocation, &REVOKE_TOKENS, &params, false);
}

static const struct statement TOKEN_LIST = {"tokens_list",
                                            "SELECT error, reply FROM tokens_list($1, $2)"};

void admin_tokens_list(struct invocation *invocation)
{
    struct params params = {0};
    const char *user_id;

    if (!take_user(invocation, "user_id", &user_id))
        return;
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, user_id);
    invocation_change(invocation, &TOKEN_LIST, &params, false);
}

static const struct statement APP_CREATE = {
    "apps_create", "SELECT error FROM apps_create($1, $2, $3, $4, $5, $6, $7, $8, $9)"};

static void app_answer(struct invocation *invocation, const struct result *result)
{
    const struct new_token *token = CAST(new_token, invocation->state);

    if (!invocation_succeeded(invocation, result))
        return;
    struct json_writer *w = invocation_open(invocation);
    json_key(w, "app");
    json_open_object(w);
    json_key_string(w, "id", token->app_id);
    json_key_string(w, "signing_secret", token->secret);
    json_close_object(w);
    json_key_string(w, "app_token", token->token);
    invocation_close(invocation);
}

// Writes the secret as it is stored: encrypted, if there is a key.
static void secret_write(const struct secrets *secrets, const struct new_token *token,
                         struct buffer *out)
{
    char place[sizeof APP_SECRET_PLACE + ID_SIZE];

    snprintf(place, sizeof place, APP_SECRET_PLACE "%s", token->app_id);
    if (secrets->count > 0)
        secrets_seal(secrets, place, token->secret, strlen(token->secret), out);
    else
        buffer_append_text(out, token->secret);
}

static bool take_events_url(struct invocation *invocation, const char **ret_url)
{
    return take_optional_word(invocation, "events_url", ret_url) &&
           url_check(invocation, "events_url", *ret_url);
}

// Reads the app's subscribed events as "a,b"; "": all events.
static bool take_events(struct invocation *invocation, char *ret_events)
{
    if (!take_list(invocation, "events", ret_events, EVENTS_SIZE))
        return false;
    for (const char *name = ret_events; *name != '\0';) {
        size_t length = strcspn(name, ",");
        if (!callback_name_is_known(name, length)) {
            invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                    "events: must be a list of events such as app_mention, "
                                    "message.channels");
            return false;
        }
        name += length + (name[length] == ',');
    }
    return true;
}

// Reads the secret that the caller's program knows already, so that it can check the first event.
static bool take_signing_secret(struct invocation *invocation, const char **ret_secret)
{
    if (!take_optional_word(invocation, "signing_secret", ret_secret))
        return false;
    size_t length = *ret_secret ? strlen(*ret_secret) : SIGNING_SECRET_MIN;
    if (length >= SIGNING_SECRET_MIN && length < TOKEN_SIZE &&
        (!*ret_secret || strspn(*ret_secret, SECRET_LETTERS) == length))
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "signing_secret: must be %d to %d letters, digits, '-' or '_'",
                            SIGNING_SECRET_MIN, TOKEN_SIZE - 1);
    return false;
}

void admin_apps_create(struct invocation *invocation)
{
    struct params params = {0};
    char events[EVENTS_SIZE];
    char digest[DIGEST_HEX_SIZE];
    CLEANUP(buffer_done) struct buffer secret = BUFFER(SECRET_MAX);
    const char *name;
    const char *bot_user_id;
    const char *events_url = NULL;
    const char *signing_secret = NULL;

    if (!take_label(invocation, "name", &name) ||
        !take_user(invocation, "bot_user_id", &bot_user_id) ||
        !take_events_url(invocation, &events_url) || !take_events(invocation, events) ||
        !take_signing_secret(invocation, &signing_secret))
        return;
    struct new_token *token = token_prepare(invocation, "xapp", digest);
    if (!token)
        return;
    id_make('A', token->app_id);
    if (signing_secret)
        snprintf(token->secret, sizeof token->secret, "%s", signing_secret);
    else
        token_make("s", token->secret);
    secret_write(invocation->api->options.secrets, token, &secret);
    if (buffer_failed(&secret)) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, token->app_id);
    params_text(&params, name);
    params_text(&params, bot_user_id);
    params_text_n(&params, secret.data, secret.length);
    params_text(&params, events_url);
    params_text(&params, token->id);
    params_text(&params, digest);
    params_text(&params, events);
    invocation_query(invocation, STORE_WRITE, &APP_CREATE, &params, app_answer);
}

static const struct statement APP_DELETE = {
    "apps_delete", "SELECT error, reply, $2::text FROM apps_delete($1, $2)"};

void admin_apps_delete(struct invocation *invocation)
{
    struct params params = {0};
    const char *app_id;

    if (!take_id(invocation, "app_id", "A", -ERROR_APP_NOT_FOUND, &app_id))
        return;
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, app_id);
    invocation->done_fn = token_revoked;
    invocation_change(invocation, &APP_DELETE, &params, false);
}
