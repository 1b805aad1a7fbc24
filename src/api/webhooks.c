// SPDX-License-Identifier: Apache-2.0
// Incoming webhooks: secret URLs to which tools post messages, and admin.webhooks.*, which makes
// them. The secret is stored as a digest, and shown once.
#include "methods.h"

#include "admin_arguments.h"
#include "base/check.h"
#include "base/digest.h"
#include "base/text.h"
#include "callers_url.h"
#include "workspace_frames.h"

#include <stdio.h>
#include <string.h>

enum {
    WEBHOOKS_MAX = 1000, // in a workspace
    ICON_EMOJI_MAX = 100,
    URL_SIZE = 1024,
    BOT_NAME_SIZE = sizeof "webhook-" + ID_SIZE,
    PATH_SIZE = 3 * ID_SIZE + ID_SECRET_SIZE // "T…/B…/secret"
};

// A webhook being made.
struct new_webhook {
    uint32_t tag;
    char id[ID_SIZE];
    char path[PATH_SIZE];
};

static const struct statement CREATE = {
    "webhooks_create",
    "SELECT error, reply, told, changed FROM webhooks_create($1, $2, $3, $4, $5, $6, $7, $8, $9, "
    "$10, $11, $12)"};
static const struct statement LIST = {"webhooks_list",
                                      "SELECT error, reply FROM webhooks_list($1)"};
static const struct statement DELETE = {
    "webhooks_delete",
    "SELECT error, reply, told, changed, $4::text, $3::text AS caller FROM webhooks_delete($1, $2, "
    "$4)"};
static const struct statement WEBHOOK = {
    "webhook", "SELECT channel_id, name, icon_url, icon_emoji FROM webhooks WHERE id = $1"};
enum { COLUMN_ERROR, COLUMN_REPLY, COLUMN_TOLD, COLUMN_CHANGED, COLUMN_ID };
enum { COLUMN_CHANNEL, COLUMN_NAME, COLUMN_ICON_URL, COLUMN_ICON_EMOJI };

// The path has only letters and digits between its slashes: tools check that.
static struct new_webhook *webhook_prepare(struct invocation *invocation)
{
    struct new_webhook *made = TAGGED_NEW(new_webhook);
    char secret[ID_SECRET_SIZE];

    if (!made) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return NULL;
    }
    invocation->state = made;
    request_set_secret(invocation->request);
    id_make('B', made->id);
    id_make_secret(secret);
    snprintf(made->path, sizeof made->path, "%s/%s/%s", invocation->actor->workspace_id, made->id,
             secret);
    return made;
}

static void webhook_created(struct invocation *invocation, const struct result *result)
{
    const struct new_webhook *made = CAST(new_webhook, invocation->state);
    char url[URL_SIZE];

    if (!invocation_succeeded(invocation, result))
        return;
    invocation_submit(invocation, 0);
    workspace_publish(invocation, "team_join", result_text(result, 0, COLUMN_CHANGED),
                      result_length(result, 0, COLUMN_CHANGED));
    invocation_base_url(invocation, url, sizeof url - PATH_SIZE);
    size_t length = strlen(url);
    snprintf(url + length, sizeof url - length, "services/%s", made->path);
    struct json_writer *w = invocation_open(invocation);
    json_key(w, "webhook");
    json_open_object(w);
    json_key_string(w, "url", url);
    buffer_append_byte(w->out, ',');
    buffer_append(w->out, result_text(result, 0, COLUMN_REPLY) + 1,
                  result_length(result, 0, COLUMN_REPLY) - 1);
    w->comma = true;
    invocation_close(invocation);
}

static bool take_icon_url(struct invocation *invocation, const char **ret_url)
{
    return take_optional_word(invocation, "icon_url", ret_url) &&
           url_check(invocation, "icon_url", *ret_url);
}

static bool take_icon_emoji(struct invocation *invocation, const char **ret_emoji)
{
    if (!take_optional_word(invocation, "icon_emoji", ret_emoji))
        return false;
    if (!*ret_emoji || text_code_points(*ret_emoji, strlen(*ret_emoji)) <= ICON_EMOJI_MAX)
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "icon_emoji: must have at most %d characters", ICON_EMOJI_MAX);
    return false;
}

// Adds a name that no user has: the id in lower case, as names of users are.
static void params_bot(struct params *params, const char *webhook_id)
{
    char user_id[ID_SIZE];
    char name[BOT_NAME_SIZE];

    id_make('U', user_id);
    snprintf(name, sizeof name, "webhook-%s", webhook_id);
    for (char *at = name; *at != '\0'; at++)
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
    params_text(params, user_id);
    params_text(params, name);
}

void admin_webhooks_create(struct invocation *invocation)
{
    struct params params = {0};
    char digest[DIGEST_HEX_SIZE];
    const char *channel_id;
    const char *name;
    const char *icon_url = NULL;
    const char *icon_emoji = NULL;

    if (!take_channel(invocation, &channel_id) || !take_label(invocation, "name", &name) ||
        !take_icon_url(invocation, &icon_url) || !take_icon_emoji(invocation, &icon_emoji))
        return;
    const struct new_webhook *made = webhook_prepare(invocation);
    if (!made)
        return;
    digest_sha256_hex(made->path, strlen(made->path), digest);
    invocation_change_params(invocation, &params);
    params_text(&params, channel_id);
    params_text(&params, made->id);
    params_bot(&params, made->id);
    params_text(&params, digest);
    params_text(&params, name);
    params_text(&params, icon_url);
    params_text(&params, icon_emoji);
    params_int(&params, WEBHOOKS_MAX);
    invocation_query(invocation, STORE_WRITE, &CREATE, &params, webhook_created);
}

void admin_webhooks_list(struct invocation *invocation)
{
    invocation_list_resources(invocation, &LIST);
}

static void webhook_deleted(struct invocation *invocation, const struct result *result)
{
    workspace_session_changed(invocation, result_text(result, 0, COLUMN_ID));
    workspace_publish(invocation, "user_change", result_text(result, 0, COLUMN_CHANGED),
                      result_length(result, 0, COLUMN_CHANGED));
}

void admin_webhooks_delete(struct invocation *invocation)
{
    struct params params = {0};
    const char *webhook_id;

    if (!take_id(invocation, "webhook_id", "B", -ERROR_WEBHOOK_NOT_FOUND, &webhook_id))
        return;
    invocation_change_params(invocation, &params);
    params_text(&params, webhook_id);
    invocation->done_fn = webhook_deleted;
    invocation_change(invocation, &DELETE, &params, true);
}

// Sets an argument that the message does not have. False: out of memory.
static bool argument_default(struct invocation *invocation, const struct result *row,
                             const char *name, int column)
{
    if (invocation_has(invocation, name) || result_is_null(row, 0, column))
        return true;
    return request_arg_set_copy(invocation->request, name, result_text(row, 0, column)) >= 0;
}

// Adds what the webhook determines: where the message goes, and how it looks.
static bool message_complete(struct invocation *invocation, const struct result *row)
{
    struct request *request = invocation->request;
    bool has_icon =
        invocation_has(invocation, "icon_url") || invocation_has(invocation, "icon_emoji");

    if (request_arg_set_copy(request, "channel", result_text(row, 0, COLUMN_CHANNEL)) < 0 ||
        !argument_default(invocation, row, "username", COLUMN_NAME))
        return false;
    return has_icon || (argument_default(invocation, row, "icon_url", COLUMN_ICON_URL) &&
                        argument_default(invocation, row, "icon_emoji", COLUMN_ICON_EMOJI));
}

static void webhook_found(struct invocation *invocation, const struct result *result)
{
    if (result_rows(result) == 0) // deleted meanwhile
        invocation_fail(invocation, -ERROR_INVALID_AUTH);
    else if (!message_complete(invocation, result))
        invocation_fail(invocation, -ERROR_MEMORY);
    else
        chat_post_message(invocation);
}

void webhooks_post(struct invocation *invocation)
{
    struct params params = {0};

    params_text(&params, invocation->actor->token_id);
    invocation_query(invocation, STORE_READ, &WEBHOOK, &params, webhook_found);
}
