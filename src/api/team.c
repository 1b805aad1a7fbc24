// SPDX-License-Identifier: Apache-2.0
// What a workspace shows of itself: team.info, bots.info, emoji.list and admin.emoji.*,
// usergroups.list.
#include "methods.h"

#include "callers_url.h"
#include "chat/emoji.h"
#include "workspace_frames.h"

#include <string.h>

enum { EMOJI_MAX = 5000 };

static const struct statement TEAM = {"team_info", "SELECT error, reply FROM team_info($1)"};
static const struct statement BOT = {"bots_info", "SELECT error, reply FROM bots_info($1, $2)"};
static const struct statement EMOJI = {"emoji_list", "SELECT error, reply FROM emoji_list($1)"};
static const struct statement EMOJI_ADD = {
    "emoji_add", "SELECT error, reply, changed FROM emoji_add($1, $2, $3, $4, $5, $6::integer)"};
static const struct statement EMOJI_REMOVE = {
    "emoji_remove", "SELECT error, reply, changed FROM emoji_remove($1, $2)"};

void team_info(struct invocation *invocation)
{
    struct params params = {0};

    params_text(&params, invocation->actor->workspace_id);
    invocation_read(invocation, STORE_READ, &TEAM, &params);
}

// Without the argument: the caller, if that is a bot.
void bots_info(struct invocation *invocation)
{
    struct params params = {0};
    const char *bot_id = invocation->actor->bot_id;

    if ((bot_id[0] == '\0' || invocation_has(invocation, "bot")) &&
        !take_id(invocation, "bot", "B", -ERROR_BOT_NOT_FOUND, &bot_id))
        return;
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, bot_id);
    invocation_read(invocation, STORE_READ, &BOT, &params);
}

// There are no groups of users.
void usergroups_list(struct invocation *invocation)
{
    struct json_writer *w = invocation_open(invocation);

    json_key(w, "usergroups");
    json_open_array(w);
    json_close_array(w);
    invocation_close(invocation);
}

void emoji_list(struct invocation *invocation)
{
    struct params params = {0};

    params_text(&params, invocation->actor->workspace_id);
    invocation_read(invocation, STORE_READ, &EMOJI, &params);
}

static void emoji_changed(struct invocation *invocation, const struct result *result)
{
    workspace_publish(invocation, "emoji_changed", result_text(result, 0, 2),
                      result_length(result, 0, 2));
}

static bool take_emoji_name(struct invocation *invocation, const char *argument,
                            const char **ret_name)
{
    if (!take_text(invocation, argument, ret_name))
        return false;
    if (emoji_name_is_plain(*ret_name, strlen(*ret_name)))
        return true;
    invocation_fail_message(
        invocation, -ERROR_INVALID_NAME,
        "%s: must be 1 to %d lower-case letters, digits, '_', '-', '+' or \"'\"", argument,
        EMOJI_NAME_MAX);
    return false;
}

// Either a URL or the emoji that the name is another one for.
static bool take_emoji(struct invocation *invocation, const char **ret_url, const char **ret_alias)
{
    bool has_url = invocation_has(invocation, "url");

    *ret_url = *ret_alias = NULL;
    if (has_url == invocation_has(invocation, "alias_for")) {
        invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                                "url: must be given, or alias_for, and not both");
        return false;
    }
    if (!has_url)
        return take_emoji_name(invocation, "alias_for", ret_alias);
    return take_text(invocation, "url", ret_url) && url_check(invocation, "url", *ret_url);
}

void admin_emoji_add(struct invocation *invocation)
{
    struct params params = {0};
    const char *name, *url, *alias_for;

    if (!take_emoji_name(invocation, "name", &name) || !take_emoji(invocation, &url, &alias_for))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, name);
    params_text(&params, url);
    params_text(&params, alias_for);
    params_int(&params, EMOJI_MAX);
    invocation->done_fn = emoji_changed;
    invocation_change(invocation, &EMOJI_ADD, &params, false);
}

void admin_emoji_remove(struct invocation *invocation)
{
    struct params params = {0};
    const char *name;

    if (!take_emoji_name(invocation, "name", &name))
        return;
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, name);
    invocation->done_fn = emoji_changed;
    invocation_change(invocation, &EMOJI_REMOVE, &params, false);
}
