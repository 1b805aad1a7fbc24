// SPDX-License-Identifier: Apache-2.0
// users.profile.get and set, users.lookupByEmail, users.search, users.identity, users.prefs.get and
// admin.users.update.
#include "methods.h"

#include "base/json.h"
#include "base/text.h"
#include "callers_url.h"
#include "jwt_profile.h"
#include "workspace_frames.h"

#include <string.h>

enum { SEARCH_DEFAULT = 20, SEARCH_MAX = 100, FIELD_MAX = 255, FIELDS_MAX = 50, STATUS_MAX = 100 };

static const struct statement PROFILE_GET = {
    "users_profile_get", "SELECT error, reply FROM users_profile_get($1, $2, $3, $4)"};
static const struct statement PROFILE_SET = {
    "users_profile_set",
    "SELECT error, reply, changed, $3::text FROM users_profile_set($1, $2, $3, $4::jsonb, $5)"};
static const struct statement UPDATE = {
    "users_update", "SELECT error, reply, changed, $2::text FROM users_update($1, $2, $3, $4, $5, "
                    "$6, $7, NULLIF($8, '')::boolean, $9, $10)"};
static const struct statement BY_EMAIL = {"users_by_email",
                                          "SELECT error, reply FROM users_by_email($1, $2, $3)"};
static const struct statement SEARCH = {
    "users_search", "SELECT object FROM users_search($1, $2, $3, $4::integer, $5)"};
static const struct statement IDENTITY = {"users_identity",
                                          "SELECT error, reply FROM users_identity($1, $2)"};

void users_profile_get(struct invocation *invocation)
{
    struct params params = {0};
    const char *user_id = invocation->actor->user_id;

    if (invocation_has(invocation, "user") && !take_user(invocation, "user", &user_id))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, user_id);
    params_bool(&params, actor_reads_email(invocation->actor));
    invocation_read(invocation, STORE_READ, &PROFILE_GET, &params);
}

static bool profile_refuse(struct invocation *invocation, int r, const char *name, const char *what)
{
    invocation_fail_message(invocation, r, "profile: %s must be %s", name, what);
    return false;
}

// Adds a text of the profile. What is not there stays as it is; null clears it.
static bool take_member(struct invocation *invocation, const json_t *profile, const char *name,
                        json_t *patch)
{
    const json_t *value = json_object_get(profile, name);
    bool is_status = strcmp(name, "status_text") == 0;
    size_t max = is_status ? STATUS_MAX : FIELD_MAX;

    if (!value)
        return true;
    if (!json_is_string(value) && !json_is_null(value))
        return profile_refuse(invocation, -ERROR_INVALID_PROFILE, name, "a string");
    const char *text = json_is_null(value) ? "" : json_string_value(value);
    if (text_code_points(text, strlen(text)) > max)
        return profile_refuse(invocation, is_status ? -ERROR_TOO_LONG : -ERROR_INVALID_PROFILE,
                              name,
                              is_status ? "at most 100 characters" : "at most 255 characters");
    json_object_set_new(patch, name, json_string(text));
    return true;
}

static bool take_expiration(struct invocation *invocation, const json_t *profile, json_t *patch)
{
    json_t *value = json_object_get(profile, "status_expiration");

    if (!value)
        return true;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return profile_refuse(invocation, -ERROR_INVALID_PROFILE, "status_expiration",
                              "a time in seconds, or 0");
    json_object_set(patch, "status_expiration", value);
    return true;
}

// Whether it is {"value":"…","alt":"…"}, or one of the two.
static bool field_is_good(const json_t *field)
{
    static const char *const names[] = {"value", "alt"};
    size_t found = 0;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_t *text = json_object_get(field, names[i]);
        found += text != NULL;
        if (text &&
            (!json_is_string(text) ||
             text_code_points(json_string_value(text), json_string_length(text)) > FIELD_MAX))
            return false;
    }
    return json_is_object(field) && json_object_size(field) == found;
}

static bool take_fields(struct invocation *invocation, const json_t *profile, json_t *patch)
{
    json_t *fields = json_object_get(profile, "fields");
    const char *name;
    json_t *field;

    if (!fields || json_is_null(fields) || (json_is_array(fields) && json_array_size(fields) == 0))
        return true;
    bool good = json_is_object(fields) && json_object_size(fields) <= FIELDS_MAX;
    json_object_foreach(fields, name, field)
    {
        good = good && text_code_points(name, strlen(name)) <= FIELD_MAX && field_is_good(field);
    }
    if (!good)
        return profile_refuse(invocation, -ERROR_INVALID_PROFILE, "fields",
                              "an object of at most 50 fields, each with a value and an alt of at "
                              "most 255 characters");
    json_object_set(patch, "fields", fields);
    return true;
}

// The members that a user may set; others are ignored, since clients send back what they have read.
static bool take_members(struct invocation *invocation, const json_t *profile, json_t *patch)
{
    static const char *const names[] = {"title",        "phone",       "skype",
                                        "pronouns",     "first_name",  "last_name",
                                        "display_name", "status_text", "status_emoji"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!take_member(invocation, profile, names[i], patch))
            return false;
    return take_expiration(invocation, profile, patch) && take_fields(invocation, profile, patch);
}

// The argument `profile`, or one made of `name` and `value`; owned by the caller.
static bool take_profile(struct invocation *invocation, json_t **ret_profile)
{
    const char *name = NULL;
    const char *value = "";

    if (invocation_has(invocation, "profile")) {
        int r = request_arg_json(invocation->request, "profile", JSON_DEPTH_MAX, ret_profile);
        if (r >= 0 && json_is_object(*ret_profile))
            return true;
        invocation_fail_message(invocation, -ERROR_INVALID_PROFILE,
                                "profile: must be a JSON object");
        return false;
    }
    if (!take_text(invocation, "name", &name) || !take_optional_text(invocation, "value", &value))
        return false;
    bool is_number = strcmp(name, "status_expiration") == 0;
    int64_t number = 0;
    if (is_number &&
        !take_optional_int(invocation, "value", -ERROR_INVALID_PROFILE, 0, INT64_MAX / 2, &number))
        return false;
    *ret_profile = json_object();
    json_object_set_new(*ret_profile, name, is_number ? json_integer(number) : json_string(value));
    return true;
}

// Its full name, which everybody has: at least one visible character.
static bool take_real_name(struct invocation *invocation, const json_t *profile,
                           const char **ret_real_name)
{
    const json_t *value = json_object_get(profile, "real_name");
    const char *text = json_string_value(value);

    *ret_real_name = NULL;
    if (!value)
        return true;
    if (!text || !invocation_label_is_valid(text, strlen(text)))
        return profile_refuse(invocation, -ERROR_INVALID_PROFILE, "real_name",
                              "1 to 80 characters, not all of them blank");
    *ret_real_name = text;
    return true;
}

static bool take_target(struct invocation *invocation, const char **ret_user_id)
{
    const struct actor *actor = invocation->actor;

    *ret_user_id = actor->user_id;
    if (actor->type != 'u') {
        invocation_fail(invocation, -ERROR_NOT_ALLOWED_TOKEN_TYPE);
        return false;
    }
    if (invocation_has(invocation, "user") && !take_user(invocation, "user", ret_user_id))
        return false;
    if (strcmp(*ret_user_id, actor->user_id) == 0 ||
        (actor->is_admin && actor_has_scope(actor, "admin")))
        return true;
    invocation_fail(invocation, -ERROR_NOT_ADMIN);
    return false;
}

void users_profile_set(struct invocation *invocation)
{
    CLEANUP_JSON json_t *profile = NULL;
    CLEANUP_JSON json_t *patch = json_object();
    struct params params = {0};
    const char *user_id;
    const char *real_name;

    if (!take_target(invocation, &user_id) || !take_profile(invocation, &profile) ||
        !take_real_name(invocation, profile, &real_name) ||
        !take_members(invocation, profile, patch))
        return;
    CLEANUP_FREE char *text = json_dumps(patch, JSON_COMPACT);
    if (!text) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    invocation_caller_params(invocation, &params);
    params_text(&params, user_id);
    params_text(&params, text);
    params_text(&params, real_name);
    invocation->done_fn = workspace_user_changed;
    invocation_change(invocation, &PROFILE_SET, &params, false);
}

void users_lookup_by_email(struct invocation *invocation)
{
    struct params params = {0};
    const char *email;

    if (!take_text(invocation, "email", &email))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, email);
    invocation_read(invocation, STORE_READ, &BY_EMAIL, &params);
}

static void search_answer(struct invocation *invocation, const struct result *result)
{
    invocation_objects(invocation, "users", result);
}

void users_search(struct invocation *invocation)
{
    struct params params = {0};
    const char *query;
    int64_t limit = SEARCH_DEFAULT;

    if (!take_label(invocation, "query", &query) || !take_limit(invocation, SEARCH_MAX, &limit))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, query);
    params_int(&params, limit);
    params_bool(&params, actor_reads_email(invocation->actor));
    invocation_query(invocation, STORE_LIST, &SEARCH, &params, search_answer);
}

void users_identity(struct invocation *invocation)
{
    struct params params = {0};

    invocation_caller_params(invocation, &params);
    invocation_read(invocation, STORE_READ, &IDENTITY, &params);
}

// Slack's own settings of its clients, of which there are none here.
void users_prefs_get(struct invocation *invocation)
{
    struct json_writer *w = invocation_open(invocation);

    json_key(w, "prefs");
    json_open_object(w);
    json_close_object(w);
    invocation_close(invocation);
}

// Reads an argument that may be empty, which means none from now on; NULL: absent.
static bool take_image_url(struct invocation *invocation, const char **ret_url)
{
    *ret_url = NULL;
    if (!take_optional_text(invocation, "image_url", ret_url))
        return false;
    bool is_given = *ret_url && (*ret_url)[0] != '\0';
    return !is_given || url_check(invocation, "image_url", *ret_url);
}

static bool take_email(struct invocation *invocation, const char **ret_email)
{
    *ret_email = NULL;
    return invocation_has(invocation, "email") ? take_label(invocation, "email", ret_email)
                                               : take_optional_text(invocation, "email", ret_email);
}

// How a provider calls the user; "": no longer. Both arguments, or none.
static bool take_external_id(struct invocation *invocation, const char **ret_provider,
                             const char **ret_id)
{
    *ret_provider = *ret_id = NULL;
    if (!take_optional_word(invocation, "provider", ret_provider) ||
        !take_optional_text(invocation, "external_id", ret_id))
        return false;
    if (!*ret_provider == !*ret_id && (!*ret_id || strlen(*ret_id) <= JWT_EXTERNAL_ID_MAX))
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "external_id: must be a text of at most %d bytes, with a provider",
                            JWT_EXTERNAL_ID_MAX);
    return false;
}

void admin_users_update(struct invocation *invocation)
{
    CLEANUP_PARAMS struct params params = {0};
    const char *user_id, *email, *image_url, *provider, *external_id;
    const char *name = NULL;
    const char *real_name = NULL;
    bool is_admin = false;

    if (!take_user(invocation, "user_id", &user_id) ||
        (invocation_has(invocation, "name") && !take_user_name(invocation, &name)) ||
        !take_optional_label(invocation, "real_name", &real_name) ||
        !take_email(invocation, &email) || !take_image_url(invocation, &image_url) ||
        !take_external_id(invocation, &provider, &external_id) ||
        !take_optional_bool(invocation, "is_admin", &is_admin))
        return;
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, user_id);
    if (name) {
        params_name(&params, name);
    } else {
        params_text(&params, NULL);
        params_text(&params, NULL);
    }
    params_text(&params, real_name);
    params_text(&params, email);
    params_text(&params, image_url);
    params_text(&params, !invocation_has(invocation, "is_admin") ? "" : is_admin ? "t" : "f");
    params_text(&params, provider);
    params_text(&params, external_id);
    invocation->done_fn = workspace_user_changed;
    invocation_change(invocation, &UPDATE, &params, false);
}
