// SPDX-License-Identifier: Apache-2.0
// devices.*: a user's phones and browsers, and their push addresses.
#include "methods.h"

#include "admin_arguments.h"
#include "base/text.h"
#include "callers_url.h"
#include "chat/device_address.h"
#include "push_apps.h"

#include <stdio.h>
#include <string.h>

enum {
    DEVICE_ID_BYTES_MAX = 512, // 128 code points
    DEVICE_ID_MAX = 128,
    APP_LENGTH_MAX = 80,
    LOCALE_LENGTH_MAX = 35,
    ADDRESS_MAX = 8192
};

static const struct statement REGISTER = {
    "devices_register",
    "SELECT error, reply FROM devices_register($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"};
static const struct statement UNREGISTER = {
    "devices_unregister", "SELECT error, reply FROM devices_unregister($1, $2, $3)"};
static const struct statement LIST = {"devices_list",
                                      "SELECT error, reply FROM devices_list($1, $2)"};

bool take_device_id(struct invocation *invocation, const char **ret_id)
{
    if (!take_text(invocation, "device_id", ret_id))
        return false;
    if (text_code_points(*ret_id, strlen(*ret_id)) <= DEVICE_ID_MAX)
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "device_id: must have 1 to %d characters", DEVICE_ID_MAX);
    return false;
}

// Reads the name of a push app. A name that is invalid for an app is answered as unknown.
static bool take_app(struct invocation *invocation, const char **ret_app)
{
    if (!take_text(invocation, "app", ret_app))
        return false;
    if (strlen(*ret_app) <= APP_LENGTH_MAX)
        return true;
    invocation_fail(invocation, -ERROR_APP_NOT_FOUND);
    return false;
}

static bool take_locale(struct invocation *invocation, const char **ret_locale)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    if (!take_optional_word(invocation, "locale", ret_locale))
        return false;
    if (!*ret_locale || (strlen(*ret_locale) <= LOCALE_LENGTH_MAX &&
                         strspn(*ret_locale, letters) == strlen(*ret_locale)))
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "locale: must be a language tag such as de-CH");
    return false;
}

static bool take_preview(struct invocation *invocation, const char **value)
{
    if (!take_optional_word(invocation, "preview", value))
        return false;
    if (strcmp(*value, "full") == 0 || strcmp(*value, "sender") == 0 || strcmp(*value, "none") == 0)
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "preview: must be full, sender or none");
    return false;
}

static bool url_is_allowed(const struct invocation *invocation, const char *url)
{
    return invocation->api->options.private_allowed ? url_is_good(url) : url_is_public(url);
}

static bool take_part(struct invocation *invocation, struct device_address *address, int part)
{
    const char *name = device_part_name(address->platform, part);
    const char **value = &address->parts[part];

    if (!take_text(invocation, name, value))
        return false;
    const char *error = device_part_error(address->platform, part, *value);
    bool is_url = strcmp(name, "endpoint") == 0 || strcmp(name, "url") == 0;
    if (is_url && !error && !url_is_allowed(invocation, *value))
        error = "must be an https:// URL at a public address";
    if (error)
        invocation_fail_message(invocation, -ERROR_INVALID_TOKEN, "%s: %s", name, error);
    return !error;
}

static bool take_address(struct invocation *invocation, struct device_address *address)
{
    for (int part = 0; device_part_name(address->platform, part); part++)
        if (!take_part(invocation, address, part))
            return false;
    return true;
}

// Adds the encrypted address and the digests of its token.
static int address_params(struct invocation *invocation, const char *app, const char *device_id,
                          const struct device_address *address, struct params *params)
{
    CLEANUP(buffer_done) struct buffer json = BUFFER(ADDRESS_MAX);
    CLEANUP(buffer_done) struct buffer token = BUFFER(ADDRESS_MAX);
    CLEANUP(buffer_done) struct buffer sealed = BUFFER(2 * ADDRESS_MAX);
    const struct secrets *secrets = invocation->api->options.secrets;
    char digests[SECRETS_KEYS_MAX][DIGEST_HEX_SIZE];
    char place[sizeof DEVICE_ADDRESS_PLACE + ID_SIZE + APP_LENGTH_MAX + DEVICE_ID_BYTES_MAX + 2];

    snprintf(place, sizeof place, DEVICE_ADDRESS_PLACE "%s/%s/%s", invocation->actor->user_id, app,
             device_id);
    device_address_write(address, &json);
    if (buffer_failed(&json))
        return -ERROR_INVALID_TOKEN;
    int r = device_address_token(json.data, json.length, &token);
    if (r < 0)
        return r;
    secrets_seal(secrets, place, json.data, json.length, &sealed);
    if (buffer_failed(&sealed))
        return -ERROR_MEMORY;
    params_text_n(params, sealed.data, sealed.length);
    params_open_text_array(params);
    int count = secrets_digests(secrets, token.data, token.length, digests);
    for (int i = 0; i < count; i++)
        params_element_text(params, digests[i]);
    params_close_array(params);
    return 0;
}

// Reads the arguments again that were validated before the app's platform was known.
static void device_register(struct invocation *invocation, const struct device_address *address)
{
    struct params params = {0};
    const char *app = request_arg(invocation->request, "app");
    const char *device_id = request_arg(invocation->request, "device_id");
    const char *locale = NULL;
    const char *preview = "full";

    if (!take_locale(invocation, &locale) || !take_preview(invocation, &preview))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, app);
    params_text(&params, push_platform_name(address->platform));
    params_text(&params, device_id);
    int r = address_params(invocation, app, device_id, address, &params);
    if (r < 0) {
        params_done(&params);
        invocation_fail(invocation, r);
        return;
    }
    params_text(&params, locale);
    params_text(&params, preview);
    params_int(&params, invocation->api->options.settings.devices_max);
    invocation_change(invocation, &REGISTER, &params, false);
}

static void platform_found(struct invocation *invocation, const struct result *result)
{
    if (result_rows(result) == 0) {
        invocation_fail(invocation, -ERROR_APP_NOT_FOUND);
        return;
    }
    struct device_address address = {.platform = push_platform_find(result_text(result, 0, 0))};
    if (take_address(invocation, &address))
        device_register(invocation, &address);
}

void devices_register(struct invocation *invocation)
{
    const char *device_id;
    const char *app;

    if (take_device_id(invocation, &device_id) && take_app(invocation, &app) &&
        invocation_can_encrypt(invocation))
        push_app_ask(invocation, app, platform_found);
}

void devices_unregister(struct invocation *invocation)
{
    struct params params = {0};
    const char *device_id;
    const char *app = NULL;

    if (!take_device_id(invocation, &device_id) || !take_optional_word(invocation, "app", &app))
        return;
    params_text(&params, invocation->actor->user_id);
    params_text(&params, device_id);
    params_text(&params, app);
    invocation_change(invocation, &UNREGISTER, &params, false);
}

void devices_list(struct invocation *invocation)
{
    struct params params = {0};

    invocation_caller_params(invocation, &params);
    invocation_change(invocation, &LIST, &params, false);
}
