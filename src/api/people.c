// SPDX-License-Identifier: Apache-2.0
// users.info, users.list and users.conversations.
#include "methods.h"

#include "base/clock.h"
#include "paging.h"

#include <stdlib.h>
#include <string.h>

static const struct statement INFO = {
    "users_info",
    "SELECT user_shown(u, $3, $4, $5) FROM users u WHERE u.id = $2 AND (u.workspace_id = $1) IS "
    "TRUE",
};
static const struct statement INFO_OF_MANY = {
    "users_info_of_many",
    "SELECT CASE WHEN u.id IS NOT NULL THEN user_shown(u, $3, $4, $5) END"
    " FROM unnest($2) WITH ORDINALITY AS a (id, n)"
    " LEFT JOIN users u ON u.id = a.id AND (u.workspace_id = $1) IS TRUE ORDER BY a.n",
};
static const struct statement LIST = {
    "users_list",
    "SELECT u.id, user_shown(u, $4, $5, $6) FROM users u WHERE u.workspace_id = $1 AND u.id > $2"
    " COLLATE \"C\" ORDER BY u.id LIMIT $3",
};

enum { LIMIT_MAX = 1000, NAMED_MAX = 1000 };

// The last parameters of the statements above.
static void reader_add(struct params *params, const struct actor *actor, bool with_locale)
{
    params_text(params, actor->user_id);
    params_bool(params, actor_reads_email(actor));
    params_bool(params, with_locale);
}

static void info_answer(struct invocation *invocation, const struct result *result)
{
    if (result_rows(result) == 0) {
        invocation_fail(invocation, -ERROR_USER_NOT_FOUND);
        return;
    }
    struct json_writer *w = invocation_open(invocation);
    json_key(w, "user");
    json_raw(w, result_text(result, 0, 0), result_length(result, 0, 0));
    invocation_close(invocation);
}

static void many_answer(struct invocation *invocation, const struct result *result)
{
    for (int row = 0; row < result_rows(result); row++) {
        if (result_is_null(result, row, 0)) {
            invocation_fail(invocation, -ERROR_USER_NOT_FOUND);
            return;
        }
    }
    invocation_objects(invocation, "users", result);
}

// Replies with the list `users` instead of `user`, as requested by Slack's Go client.
static void users_info_of_many(struct invocation *invocation, bool with_locale)
{
    CLEANUP_PARAMS struct params params = {0};

    params_text(&params, invocation->actor->workspace_id);
    params_open_text_array(&params);
    if (!take_ids(invocation, "users", "UW", -ERROR_USER_NOT_FOUND, NAMED_MAX, &params))
        return;
    params_close_array(&params);
    reader_add(&params, invocation->actor, with_locale);
    invocation_query(invocation, STORE_LIST, &INFO_OF_MANY, &params, many_answer);
}

void users_info(struct invocation *invocation)
{
    struct params params = {0};
    const char *user_id;
    bool with_locale = false;

    if (!take_optional_bool(invocation, "include_locale", &with_locale))
        return;
    if (!invocation_has(invocation, "user") && invocation_has(invocation, "users")) {
        users_info_of_many(invocation, with_locale);
        return;
    }
    if (!take_user(invocation, "user", &user_id))
        return;
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, user_id);
    reader_add(&params, invocation->actor, with_locale);
    invocation_query(invocation, STORE_READ, &INFO, &params, info_answer);
}

static void list_answer(struct invocation *invocation, const struct result *result)
{
    int rows = paging_rows(invocation, result);
    struct json_writer *w = invocation_open(invocation);

    json_key(w, "members");
    json_open_array(w);
    for (int row = 0; row < rows; row++)
        json_raw(w, result_text(result, row, 1), result_length(result, row, 1));
    json_close_array(w);
    json_key_int(w, "cache_ts", clock_wall_us() / 1000000);
    paging_end_write(w, invocation, "u1", result, 0);
    invocation_close(invocation);
}

// Without a limit, or with limit=0, as many as a page may have: Slack's clients expect all.
void users_list(struct invocation *invocation)
{
    struct params params = {0};
    const char *after = "";
    bool with_locale = false;
    int64_t *limit = calloc(1, sizeof *limit);

    if (!limit) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    invocation->state = limit;
    *limit = LIMIT_MAX;
    if (!take_limit(invocation, LIMIT_MAX, limit) ||
        !take_optional_bool(invocation, "include_locale", &with_locale) ||
        !take_cursor(invocation, "u1", &after))
        return;
    if (after[0] != '\0' && !id_is_valid(after, "UW")) {
        invocation_fail_message(invocation, -ERROR_INVALID_CURSOR,
                                "cursor: must be the next_cursor of an earlier reply");
        return;
    }
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, after);
    params_int(&params, paging_rows_wanted(invocation));
    reader_add(&params, invocation->actor, with_locale);
    invocation_query(invocation, STORE_LIST, &LIST, &params, list_answer);
}

static const struct statement CONVERSATIONS = {
    "users_conversations",
    "SELECT error, id, object FROM users_conversations($1, $2, $3, $4::integer, $5, $6, $7, "
    "$8::integer)"};

static void conversations_answer(struct invocation *invocation, const struct result *result)
{
    if (!result_is_null(result, 0, 0)) {
        invocation_fail(invocation, error_from_code(result_text(result, 0, 0)));
        return;
    }
    paging_reply(invocation, "channels", "uc1", result, 1);
}

void users_conversations(struct invocation *invocation)
{
    struct params params = {0};
    const char *after;
    const char *user_id = invocation->actor->user_id;
    unsigned types = TYPES_PUBLIC;
    bool exclude_archived = false;
    bool exclude_muted = false;

    if (invocation_has(invocation, "user") && !take_user(invocation, "user", &user_id))
        return;
    if (!take_page(invocation, "uc1", "CGD", &after) || !take_optional_types(invocation, &types) ||
        !take_optional_bool(invocation, "exclude_archived", &exclude_archived) ||
        !take_optional_bool(invocation, "exclude_muted", &exclude_muted))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, user_id);
    params_int(&params, types);
    params_bool(&params, exclude_archived);
    params_bool(&params, exclude_muted);
    params_text(&params, after);
    params_int(&params, paging_rows_wanted(invocation));
    invocation_query(invocation, STORE_LIST, &CONVERSATIONS, &params, conversations_answer);
}
