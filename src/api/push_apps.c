// SPDX-License-Identifier: Apache-2.0
// admin.pushApps.*: apps for phones and browsers, with their providers' keys.
#include "methods.h"

#include "admin_arguments.h"
#include "chat/device_address.h"
#include "push_apps.h"
#include "push_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALPHANUMERIC "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

enum { APPLE_ID_LENGTH = 10, TEXT_LENGTH_MAX = 255, FIELDS_MAX = 4096 };

// What to store of an app.
struct push_app_change {
    const char *name;
    enum push_platform platform;
    bool is_new;          // otherwise absent arguments leave values unchanged
    struct buffer fields; // JSON
    struct buffer secret; // in plain text until encrypted; empty: none, or unchanged
};

static void change_done(struct push_app_change *change)
{
    buffer_done(&change->fields);
    buffer_done(&change->secret);
}

static bool take_platform(struct invocation *invocation, enum push_platform *ret_platform)
{
    const char *name;

    if (!take_text(invocation, "platform", &name))
        return false;
    *ret_platform = push_platform_find(name);
    if (*ret_platform < PUSH_PLATFORM_MAX)
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "platform: must be apns, fcm, webpush or matrix");
    return false;
}

static bool apple_id_is_good(const char *text)
{
    return strlen(text) == APPLE_ID_LENGTH && strspn(text, ALPHANUMERIC) == APPLE_ID_LENGTH;
}

static bool topic_is_good(const char *text)
{
    return strlen(text) <= TEXT_LENGTH_MAX && strspn(text, ALPHANUMERIC ".-") == strlen(text);
}

static bool environment_is_good(const char *text)
{
    return strcmp(text, "production") == 0 || strcmp(text, "sandbox") == 0;
}

static bool subject_is_good(const char *text)
{
    bool has_scheme = strncmp(text, "mailto:", 7) == 0 || strncmp(text, "https://", 8) == 0;

    for (const char *at = text; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~')
            return false;
    return has_scheme && strlen(text) <= TEXT_LENGTH_MAX;
}

struct push_app_field {
    const char *name;
    bool (*is_good)(const char *text);
    const char *range;
    const char *otherwise; // default for a new app; NULL: required
};

static const struct push_app_field apns_fields[] = {
    {"key_id", apple_id_is_good, "10 letters and digits", NULL},
    {"team_id", apple_id_is_good, "10 letters and digits", NULL},
    {"topic", topic_is_good, "the app's bundle id", NULL},
    {"environment", environment_is_good, "production or sandbox", "production"},
};
static const struct push_app_field subject_field = {"subject", subject_is_good,
                                                    "a mailto: or https: URL", NULL};

// Reads an argument; a missing required one is an error.
static bool take_field_text(struct invocation *invocation, const char *name, bool is_required,
                            const char **value)
{
    *value = NULL;
    return is_required ? take_text(invocation, name, value)
                       : take_optional_word(invocation, name, value);
}

static bool take_field(struct invocation *invocation, const struct push_app_field *field,
                       const struct push_app_change *change, struct json_writer *w)
{
    const char *text;

    if (!take_field_text(invocation, field->name, change->is_new && !field->otherwise, &text))
        return false;
    if (!text && change->is_new)
        text = field->otherwise;
    if (text && !field->is_good(text)) {
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS, "%s: must be %s", field->name,
                                field->range);
        return false;
    }
    if (text)
        json_key_string(w, field->name, text);
    return true;
}

static bool take_apns(struct invocation *invocation, struct push_app_change *change,
                      struct json_writer *w)
{
    const char *key;

    for (size_t i = 0; i < sizeof apns_fields / sizeof apns_fields[0]; i++)
        if (!take_field(invocation, &apns_fields[i], change, w))
            return false;
    if (!take_field_text(invocation, "key", change->is_new, &key))
        return false;
    if (key && (strlen(key) > PUSH_KEY_MAX || push_key_check_apns(key) < 0)) {
        invocation_fail_message(invocation, -ERROR_INVALID_KEY,
                                "key: must be a private EC key on P-256 in PEM, not encrypted");
        return false;
    }
    if (key)
        buffer_append_text(&change->secret, key);
    return true;
}

// As a JSON object, or as its text.
static bool take_account(struct invocation *invocation, bool is_required, const char **ret_text)
{
    static const char name[] = "service_account";

    if (request_arg_is_text(invocation->request, name) || !invocation_has(invocation, name))
        return take_field_text(invocation, name, is_required, ret_text);
    *ret_text = request_arg(invocation->request, name);
    return true;
}

static bool take_fcm(struct invocation *invocation, struct push_app_change *change,
                     struct json_writer *w)
{
    CLEANUP_JSON json_t *account = NULL;
    const char *text;
    const char *invalid;

    if (!take_account(invocation, change->is_new, &text))
        return false;
    if (!text)
        return true;
    int r = strlen(text) > PUSH_KEY_MAX ? -ERROR_INVALID_KEY
                                        : push_key_read_account(text, &account, &invalid);
    if (r < 0) {
        invocation_fail_message(invocation, r,
                                "service_account: must be the JSON of a service account; check %s",
                                strlen(text) > PUSH_KEY_MAX ? "its length" : invalid);
        return false;
    }
    json_key_string(w, "project_id", json_string_value(json_object_get(account, "project_id")));
    json_key_string(w, "client_email", json_string_value(json_object_get(account, "client_email")));
    buffer_append_text(&change->secret, text);
    return true;
}

static bool take_webpush(struct invocation *invocation, struct push_app_change *change,
                         struct json_writer *w)
{
    CLEANUP(buffer_done) struct buffer public_key = BUFFER(PUSH_KEY_MAX);

    if (!take_field(invocation, &subject_field, change, w))
        return false;
    if (!change->is_new)
        return true;
    if (push_key_make_webpush(&change->secret, &public_key) < 0) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return false;
    }
    json_key(w, "public_key");
    json_string_n(w, public_key.data, public_key.length);
    return true;
}

static bool take_change(struct invocation *invocation, struct push_app_change *change)
{
    struct json_writer w = json_writer_to(&change->fields);
    bool done = true;

    json_open_object(&w);
    if (change->platform == PUSH_APNS)
        done = take_apns(invocation, change, &w);
    else if (change->platform == PUSH_FCM)
        done = take_fcm(invocation, change, &w);
    else if (change->platform == PUSH_WEBPUSH)
        done = take_webpush(invocation, change, &w);
    json_close_object(&w);
    return done;
}

// Adds the parameters common to create and update. False: an error was replied.
static bool change_params(struct invocation *invocation, const struct push_app_change *change,
                          struct params *params)
{
    CLEANUP(buffer_done) struct buffer sealed = BUFFER(4 * PUSH_KEY_MAX);
    const struct secrets *secrets = invocation->api->options.secrets;
    char place[sizeof PUSH_APP_SECRET_PLACE + ID_SIZE + RESOURCE_NAME_MAX + 1];

    if (!invocation_can_encrypt(invocation))
        return false;
    snprintf(place, sizeof place, PUSH_APP_SECRET_PLACE "%s/%s", invocation->actor->workspace_id,
             change->name);
    if (change->secret.length > 0)
        secrets_seal(secrets, place, change->secret.data, change->secret.length, &sealed);
    if (buffer_failed(&change->fields) || buffer_failed(&change->secret) ||
        buffer_failed(&sealed)) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return false;
    }
    params_text(params, invocation->actor->workspace_id);
    params_text(params, change->name);
    params_text(params, push_platform_name(change->platform));
    params_text_n(params, change->fields.data, change->fields.length);
    if (sealed.length > 0)
        params_text_n(params, sealed.data, sealed.length);
    else
        params_text(params, NULL);
    return true;
}

static const struct statement CREATE = {
    "push_apps_create", "SELECT error, reply FROM push_apps_create($1, $2, $3, $4, $5)"};
static const struct statement UPDATE = {
    "push_apps_update", "SELECT error, reply FROM push_apps_update($1, $2, $3, $4, $5)"};
static const struct statement PLATFORM = {"push_app_platform",
                                          "SELECT platform FROM push_app_platform($1, $2)"};
static const struct statement LIST = {"push_apps_list",
                                      "SELECT error, reply FROM push_apps_list($1)"};
static const struct statement DELETE = {"push_apps_delete",
                                        "SELECT error, reply FROM push_apps_delete($1, $2)"};

void admin_push_apps_create(struct invocation *invocation)
{
    CLEANUP(change_done)
    struct push_app_change change = {
        .is_new = true, .fields = BUFFER(FIELDS_MAX), .secret = BUFFER(PUSH_KEY_MAX)};
    struct params params = {0};

    if (!take_resource_name(invocation, &change.name) ||
        !take_platform(invocation, &change.platform) || !take_change(invocation, &change) ||
        !change_params(invocation, &change, &params))
        return;
    invocation_change(invocation, &CREATE, &params, false);
}

void push_app_ask(struct invocation *invocation, const char *name, invocation_rows_fn *fn)
{
    struct params params = {0};

    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, name);
    invocation_query(invocation, STORE_READ, &PLATFORM, &params, fn);
}

static void platform_found(struct invocation *invocation, const struct result *result)
{
    CLEANUP(change_done)
    struct push_app_change change = {.name = request_arg(invocation->request, "name"),
                                     .fields = BUFFER(FIELDS_MAX),
                                     .secret = BUFFER(PUSH_KEY_MAX)};
    struct params params = {0};

    if (result_rows(result) == 0) {
        invocation_fail(invocation, -ERROR_APP_NOT_FOUND);
        return;
    }
    change.platform = push_platform_find(result_text(result, 0, 0));
    if (take_change(invocation, &change) && change_params(invocation, &change, &params))
        invocation_change(invocation, &UPDATE, &params, false);
}

void admin_push_apps_update(struct invocation *invocation)
{
    const char *name;

    if (take_resource_name(invocation, &name))
        push_app_ask(invocation, name, platform_found);
}

void admin_push_apps_list(struct invocation *invocation)
{
    invocation_list_resources(invocation, &LIST);
}

void admin_push_apps_delete(struct invocation *invocation)
{
    invocation_delete_resource(invocation, &DELETE);
}
