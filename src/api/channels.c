// SPDX-License-Identifier: Apache-2.0
// Channels and their members: create, list, join, leave, invite, kick, archive. Each change is one
// function of sql/05_channels.sql.
#include "methods.h"

#include "channel_settings.h"
#include "paging.h"

#include <string.h>

enum { INVITED_MAX = 1000 };

static const struct statement CREATE = {
    "channels_create", "SELECT * FROM channels_create($1, $2, $3, $4, $5, $6, $7, $8, $9)"};
static const struct statement JOIN = {"channels_join",
                                      "SELECT * FROM channels_join($1, $2, $3, $4)"};
static const struct statement JOIN_BY_NAME = {
    "channels_join_by_name", "SELECT * FROM channels_join_by_name($1, $2, $3, $4, $5, $6, $7, $8)"};
static const struct statement LEAVE = {"channels_leave",
                                       "SELECT * FROM channels_leave($1, $2, $3, $4)"};
static const struct statement INVITE = {"channels_invite",
                                        "SELECT * FROM channels_invite($1, $2, $3, $4, $5, $6)"};
static const struct statement KICK = {"channels_kick",
                                      "SELECT * FROM channels_kick($1, $2, $3, $4, $5, $6)"};
static const struct statement SET_STRATEGY = {
    "channels_set_strategy", "SELECT * FROM channels_set_strategy($1, $2, $3, $4, $5, $6, $7)"};
static const struct statement ARCHIVE = {
    "channels_archive", "SELECT * FROM channels_archive($1, $2, $3, $4, $5, true)"};
static const struct statement UNARCHIVE = {
    "channels_unarchive", "SELECT * FROM channels_archive($1, $2, $3, $4, $5, false)"};

static bool strategy_is_known(struct invocation *invocation, const char *strategy)
{
    static const char *const known[] = {"auto", "sequence", "zset", "counter", "bitmap"};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i], strategy) == 0)
            return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "strategy: must be auto, sequence, zset, counter or bitmap");
    return false;
}

// Adds the strategy, and the limits by which auto chooses.
static void strategy_params(struct params *params, const struct invocation *invocation,
                            const char *strategy)
{
    params_text(params, strategy);
    params_open_int_array(params);
    for (size_t i = 0; i < 3; i++)
        params_element_int(params, invocation->api->options.auto_limits[i]);
    params_close_array(params);
}

void channels_create(struct invocation *invocation)
{
    struct params params = {0};
    const char *name;
    const char *strategy = "auto";
    bool is_private = false;
    char id[ID_SIZE];

    if (!take_channel_name(invocation, &name) ||
        !take_optional_bool(invocation, "is_private", &is_private) ||
        !take_optional_word(invocation, "strategy", &strategy) ||
        !strategy_is_known(invocation, strategy))
        return;
    id_make(is_private ? 'G' : 'C', id);
    invocation_change_params(invocation, &params);
    params_text(&params, id);
    params_name(&params, name);
    params_bool(&params, is_private);
    strategy_params(&params, invocation, strategy);
    invocation_change(invocation, &CREATE, &params, true);
}

static void channel_change(struct invocation *invocation, const struct statement *statement)
{
    struct params params = {0};
    const char *channel_id;

    if (!take_channel(invocation, &channel_id))
        return;
    invocation_change_params(invocation, &params);
    params_text(&params, channel_id);
    invocation_change(invocation, statement, &params, true);
}

// Joins by name, like Slack's older channels.join: creates the channel if it does not exist.
static void join_by_name(struct invocation *invocation)
{
    struct params params = {0};
    const char *name = request_arg(invocation->request, "name");
    char id[ID_SIZE];

    if (name[0] == '#' && request_arg_set(invocation->request, "name", name + 1) < 0) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    if (!take_channel_name(invocation, &name))
        return;
    id_make('C', id);
    invocation_change_params(invocation, &params);
    params_name(&params, name);
    params_text(&params, id);
    strategy_params(&params, invocation, "auto");
    invocation_change(invocation, &JOIN_BY_NAME, &params, true);
}

void channels_join(struct invocation *invocation)
{
    if (strcmp(request_method(invocation->request), "channels.join") == 0 &&
        !invocation_has(invocation, "channel") && invocation_has(invocation, "name"))
        join_by_name(invocation);
    else
        channel_change(invocation, &JOIN);
}

void channels_leave(struct invocation *invocation)
{
    channel_change(invocation, &LEAVE);
}

// A change that admins may make where other users may not.
static void channel_manage(struct invocation *invocation, const struct statement *statement)
{
    struct params params = {0};
    const char *channel_id;

    if (!take_channel(invocation, &channel_id))
        return;
    invocation_change_params(invocation, &params);
    params_bool(&params, invocation->actor->is_admin);
    params_text(&params, channel_id);
    invocation_change(invocation, statement, &params, true);
}

void channels_archive(struct invocation *invocation)
{
    channel_manage(invocation, &ARCHIVE);
}

void channels_unarchive(struct invocation *invocation)
{
    channel_manage(invocation, &UNARCHIVE);
}

void channels_set_strategy(struct invocation *invocation)
{
    struct params params = {0};
    const char *channel_id;
    const char *strategy;

    if (!take_channel(invocation, &channel_id) || !take_text(invocation, "strategy", &strategy) ||
        !strategy_is_known(invocation, strategy))
        return;
    invocation_change_params(invocation, &params);
    params_bool(&params, invocation->actor->is_admin);
    params_text(&params, channel_id);
    strategy_params(&params, invocation, strategy);
    invocation_change(invocation, &SET_STRATEGY, &params, true);
}

void channels_invite(struct invocation *invocation)
{
    CLEANUP_PARAMS struct params params = {0};
    const char *channel_id;
    bool force = false;

    if (!take_channel(invocation, &channel_id) || !take_optional_bool(invocation, "force", &force))
        return;
    if (!invocation_has(invocation, "users")) {
        invocation_fail_message(invocation, -ERROR_NO_USER, "missing required field: users");
        return;
    }
    invocation_change_params(invocation, &params);
    params_text(&params, channel_id);
    params_open_text_array(&params);
    if (!take_ids(invocation, "users", "UW", -ERROR_USER_NOT_FOUND, INVITED_MAX, &params))
        return;
    params_close_array(&params);
    params_bool(&params, force);
    invocation_change(invocation, &INVITE, &params, true);
}

void channels_kick(struct invocation *invocation)
{
    struct params params = {0};
    const char *channel_id;
    const char *user_id;

    if (!take_channel(invocation, &channel_id) || !take_user(invocation, "user", &user_id))
        return;
    invocation_change_params(invocation, &params);
    params_bool(&params, invocation->actor->is_admin);
    params_text(&params, channel_id);
    params_text(&params, user_id);
    invocation_change(invocation, &KICK, &params, true);
}

static const struct statement LIST = {
    "channels_list",
    "SELECT id, object FROM channels_list($1, $2, $3::integer, $4, $5, $6::integer)"};

static void list_answer(struct invocation *invocation, const struct result *result)
{
    paging_reply(invocation, "channels", "c1", result, 0);
}

void channels_list(struct invocation *invocation)
{
    struct params params = {0};
    const char *after;
    unsigned types = TYPES_PUBLIC;
    bool exclude_archived = false;

    if (!take_page(invocation, "c1", "CGD", &after) || !take_optional_types(invocation, &types) ||
        !take_optional_bool(invocation, "exclude_archived", &exclude_archived))
        return;
    invocation_caller_params(invocation, &params);
    params_int(&params, types);
    params_bool(&params, exclude_archived);
    params_text(&params, after);
    params_int(&params, paging_rows_wanted(invocation));
    invocation_query(invocation, STORE_LIST, &LIST, &params, list_answer);
}

static const struct statement MEMBERS = {
    "channels_members", "SELECT error, id FROM channels_members($1, $2, $3, $4, $5::integer)"};

static void members_answer(struct invocation *invocation, const struct result *result)
{
    int rows = paging_rows(invocation, result);

    if (!result_is_null(result, 0, 0)) {
        invocation_fail(invocation, error_from_code(result_text(result, 0, 0)));
        return;
    }
    struct json_writer *w = invocation_open(invocation);
    json_key(w, "members");
    json_open_array(w);
    for (int row = 0; row < rows; row++)
        if (!result_is_null(result, row, 1))
            json_text(w, result_text(result, row, 1));
    json_close_array(w);
    paging_end_write(w, invocation, "m1", result, 1);
    invocation_close(invocation);
}

void channels_members(struct invocation *invocation)
{
    struct params params = {0};
    const char *channel_id;
    const char *after;

    if (!take_channel(invocation, &channel_id) || !take_page(invocation, "m1", "UW", &after))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, channel_id);
    params_text(&params, after);
    params_int(&params, paging_rows_wanted(invocation));
    invocation_query(invocation, STORE_LIST, &MEMBERS, &params, members_answer);
}
