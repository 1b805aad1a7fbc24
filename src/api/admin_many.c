// SPDX-License-Identifier: Apache-2.0
// admin.* for many users at a time: lists, creates, and adds them to a channel.
#include "methods.h"

#include "base/check.h"
#include "base/json.h"
#include "base/unicode.h"
#include "chat/names.h"
#include "paging.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY_MAX = 1000 };

static const struct statement LIST = {
    "admin_users_list", "SELECT u.id, user_reply(u, true) FROM users u WHERE u.workspace_id = $1"
                        " AND u.id > $2 COLLATE \"C\" ORDER BY u.id LIMIT $3"};

static void list_answer(struct invocation *invocation, const struct result *result)
{
    paging_reply(invocation, "users", "au1", result, 0);
}

void admin_users_list(struct invocation *invocation)
{
    struct params params = {0};
    const char *after;

    if (!take_page(invocation, "au1", "UW", &after))
        return;
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, after);
    params_int(&params, paging_rows_wanted(invocation));
    invocation_query(invocation, STORE_LIST, &LIST, &params, list_answer);
}

// A user to be created. Strings are owned by the JSON.
struct new_user {
    const char *name;
    const char *real_name;
    const char *email;
    bool is_admin;
    bool is_bot;
    char user_id[ID_SIZE];
    char bot_id[ID_SIZE];
    char error[128]; // "": can be created
};

struct making {
    uint32_t tag;
    int count;
    struct new_user users[];
};

// Finds a member. As for a single user, null and "" count as absent: false.
static bool member_find(const json_t *user, const char *key, const json_t **ret_value)
{
    const json_t *value = json_object_get(user, key);
    bool is_empty = json_is_string(value) && json_string_length(value) == 0;

    *ret_value = value;
    return value && !json_is_null(value) && !is_empty;
}

static void label_read(struct new_user *new_user, const json_t *user, const char *key,
                       const char **ret_text)
{
    const json_t *value;

    if (!member_find(user, key, &value))
        return;
    if (json_is_string(value) &&
        invocation_label_is_valid(json_string_value(value), json_string_length(value)))
        *ret_text = json_string_value(value);
    else
        snprintf(new_user->error, sizeof new_user->error, "%s: must have 1 to %d characters", key,
                 LABEL_MAX_CODE_POINTS);
}

static void name_read(struct new_user *new_user, const json_t *user)
{
    const json_t *value;

    if (!member_find(user, "name", &value))
        return;
    const char *name = json_string_value(value);
    if (name && names_can_be_user(name, json_string_length(value)))
        new_user->name = name;
    else
        snprintf(new_user->error, sizeof new_user->error, "name: must be %s", NAMES_OF_USERS);
}

// A flag's value in the form that a single user's argument has; "": invalid.
static const char *flag_text(const json_t *value)
{
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_true(value) || (json_is_integer(value) && json_integer_value(value) == 1))
        return "true";
    if (json_is_false(value) || (json_is_integer(value) && json_integer_value(value) == 0))
        return "false";
    return "";
}

static void flag_read(struct new_user *new_user, const json_t *user, const char *key,
                      bool *ret_flag)
{
    const json_t *value;

    if (member_find(user, key, &value) && invocation_flag_parse(flag_text(value), ret_flag) < 0)
        snprintf(new_user->error, sizeof new_user->error, "%s: must be true or false", key);
}

static void new_user_read(struct new_user *new_user, const json_t *user)
{
    flag_read(new_user, user, "is_bot", &new_user->is_bot);
    flag_read(new_user, user, "is_admin", &new_user->is_admin);
    label_read(new_user, user, "email", &new_user->email);
    label_read(new_user, user, "real_name", &new_user->real_name);
    name_read(new_user, user);
    if (!json_is_object(user))
        snprintf(new_user->error, sizeof new_user->error, "users: must be objects");
    else if (!new_user->name && new_user->error[0] == '\0')
        snprintf(new_user->error, sizeof new_user->error, "missing required field: name");
    id_make('U', new_user->user_id);
    id_make('B', new_user->bot_id);
}

typedef const char *new_user_text_fn(const struct new_user *new_user);

static const char *user_id_of(const struct new_user *new_user)
{
    return new_user->user_id;
}

static const char *bot_id_of(const struct new_user *new_user)
{
    return new_user->is_bot ? new_user->bot_id : NULL;
}

static const char *name_of(const struct new_user *new_user)
{
    return new_user->error[0] == '\0' ? new_user->name : NULL; // NULL: skipped by Postgres
}

static const char *real_name_of(const struct new_user *new_user)
{
    return new_user->real_name;
}

static const char *email_of(const struct new_user *new_user)
{
    return new_user->email;
}

// Adds the folded forms of the names.
static void folded_add(struct params *params, const struct making *making)
{
    params_open_text_array(params);
    for (int i = 0; i < making->count; i++) {
        const char *name = name_of(&making->users[i]);
        CLEANUP_FREE char *folded = name ? unicode_fold(name, strlen(name)) : NULL;
        params_element_text(params, folded);
    }
    params_close_array(params);
}

static void users_add(struct params *params, const struct making *making)
{
    static new_user_text_fn *const columns[] = {user_id_of, bot_id_of, name_of, real_name_of,
                                                email_of};

    for (size_t column = 0; column < sizeof columns / sizeof *columns; column++) {
        params_open_text_array(params);
        for (int i = 0; i < making->count; i++)
            params_element_text(params, columns[column](&making->users[i]));
        params_close_array(params);
    }
    folded_add(params, making);
    params_open_bool_array(params);
    for (int i = 0; i < making->count; i++)
        params_element_bool(params, making->users[i].is_admin);
    params_close_array(params);
}

static const struct statement CREATE_MANY = {
    "users_create_many",
    "SELECT reply FROM users_create_many($1, $2, $3, $4, $5, $6, $7, $8) ORDER BY n"};

// Writes the result for one user: {"user":…}, or {"error":…} with the invalid argument.
static void new_user_answer(struct json_writer *w, const struct new_user *new_user,
                            const struct result *result, int row)
{
    char message[sizeof new_user->error + sizeof "[ERROR] "];

    json_open_object(w);
    if (new_user->error[0] != '\0') {
        snprintf(message, sizeof message, "[ERROR] %s", new_user->error);
        json_key_string(w, "error", error_code(ERROR_INVALID_ARGUMENTS));
        json_key(w, "messages");
        json_open_array(w);
        json_text(w, message);
        json_close_array(w);
    } else if (result_is_null(result, row, 0)) {
        json_key_string(w, "error", error_code(ERROR_NAME_TAKEN));
    } else {
        json_key(w, "user");
        json_raw(w, result_text(result, row, 0), result_length(result, row, 0));
    }
    json_close_object(w);
}

static void create_answer(struct invocation *invocation, const struct result *result)
{
    const struct making *making = CAST(making, invocation->state);
    struct json_writer *w = invocation_open(invocation);

    json_key(w, "results");
    json_open_array(w);
    for (int i = 0; i < making->count; i++)
        new_user_answer(w, &making->users[i], result, i);
    json_close_array(w);
    invocation_close(invocation);
}

// Sends no frames to sockets, since there would be one per user.
void admin_users_create_many(struct invocation *invocation)
{
    CLEANUP_JSON json_t *users = NULL;
    struct params params = {0};
    size_t index;
    json_t *user;

    if (!take_array(invocation, "users", MANY_MAX, &users))
        return;
    size_t count = json_array_size(users);
    struct making *making = calloc(1, sizeof *making + count * sizeof making->users[0]);
    if (!making) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    making->tag = TAG(making);
    invocation->state = making;
    making->count = (int)count;
    json_array_foreach(users, index, user)
    {
        new_user_read(&making->users[index], user);
    }
    params_text(&params, invocation->actor->workspace_id);
    users_add(&params, making);
    invocation_query(invocation, STORE_MANY, &CREATE_MANY, &params, create_answer);
}

static const struct statement ADD_MEMBERS = {
    "channels_add_members",
    "SELECT error, reply, told FROM channels_add_members($1, $2, $3, $4, $5)"};

void admin_channels_add_members(struct invocation *invocation)
{
    CLEANUP_PARAMS struct params params = {0};
    const char *channel_id;
    size_t index;
    json_t *user;

    if (!take_channel(invocation, &channel_id))
        return;
    CLEANUP_JSON json_t *users = NULL;
    if (!take_array(invocation, "users", MANY_MAX, &users))
        return;
    invocation_change_params(invocation, &params);
    params_text(&params, channel_id);
    params_open_text_array(&params);
    json_array_foreach(users, index, user)
    {
        params_element_text(&params, json_is_string(user) ? json_string_value(user) : "");
    }
    params_close_array(&params);
    invocation_change_many(invocation, &ADD_MEMBERS, &params);
}
