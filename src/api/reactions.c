// SPDX-License-Identifier: Apache-2.0
// reactions.add, remove, get and list.
#include "methods.h"

#include "base/check.h"
#include "chat/emoji.h"
#include "noted.h"
#include "permalink.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct statement ADD = {
    "reactions_add", "SELECT error, reply, told FROM reactions_add($1, $2, $3, $4, $5, $6)"};
static const struct statement REMOVE = {
    "reactions_remove", "SELECT error, reply, told FROM reactions_remove($1, $2, $3, $4, $5, $6)"};
static const struct statement GET = {
    "reactions_get",
    "SELECT a.error, " MESSAGE_SELECT(
        "r", "$2") " FROM (SELECT channel_refusal($1, $2, $3) AS error) a LEFT JOIN message_rows r"
                   " ON a.error IS NULL AND r.channel_id = $3 AND r.ts = $4 AND NOT r.deleted"};
enum { COLUMN_ERROR, COLUMN_MESSAGE };

static bool take_emoji(struct invocation *invocation, const char **ret_name)
{
    const char *name = "";

    if (!take_optional_text(invocation, "name", &name))
        return false;
    if (emoji_name_is_valid(name, strlen(name))) {
        *ret_name = name;
        return true;
    }
    invocation_fail_message(invocation, -ERROR_INVALID_NAME,
                            "name: must be that of an emoji, without colons");
    return false;
}

static void reaction_change(struct invocation *invocation, const struct statement *statement)
{
    struct params params = {0};
    struct noted noted;
    const char *name;

    if (!take_noted(invocation, &noted) || !take_emoji(invocation, &name))
        return;
    noted_change_params(invocation, &noted, &params);
    params_text(&params, name);
    invocation_change(invocation, statement, &params, true);
}

void reactions_add(struct invocation *invocation)
{
    reaction_change(invocation, &ADD);
}

void reactions_remove(struct invocation *invocation)
{
    reaction_change(invocation, &REMOVE);
}

static void item_write(struct json_writer *w, const struct invocation *invocation,
                       const char *channel_id, const struct message *message)
{
    json_key_string(w, "type", "message");
    json_key_string(w, "channel", channel_id);
    json_key(w, "message");
    permalink_write_message(w, invocation, channel_id, message);
}

static void get_answer(struct invocation *invocation, const struct result *result)
{
    struct message message;

    if (!invocation_succeeded(invocation, result))
        return;
    if (result_is_null(result, 0, COLUMN_MESSAGE)) {
        invocation_fail(invocation, -ERROR_MESSAGE_NOT_FOUND);
        return;
    }
    message_read(result, 0, COLUMN_MESSAGE, &message);
    struct json_writer *w = invocation_open(invocation);
    item_write(w, invocation, request_arg(invocation->request, "channel"), &message);
    invocation_close(invocation);
}

void reactions_get(struct invocation *invocation)
{
    struct params params = {0};
    struct noted noted;

    if (!take_noted(invocation, &noted))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, noted.channel_id);
    params_int(&params, noted.ts);
    invocation_query(invocation, STORE_READ, &GET, &params, get_answer);
}

static const struct statement LIST = {
    "reactions_list",
    "SELECT l.error, l.total, l.end_ts, l.end_channel, l.event_ts, l.channel_id, " MESSAGE_SELECT(
        "r", "$2") " FROM reactions_list($1, $2, $3, $4, $5, $6, $7) l"
                   " LEFT JOIN message_rows r ON r.channel_id = l.channel_id AND r.ts = l.ts"
                   " ORDER BY l.event_ts DESC, l.channel_id COLLATE \"C\" DESC"};
enum {
    LIST_ERROR,
    LIST_TOTAL,
    LIST_END_TS,
    LIST_END_CHANNEL,
    LIST_EVENT_TS,
    LIST_CHANNEL,
    LIST_MESSAGE
};
enum { LIST_DEFAULT = 100, LIST_MAX = 1000 };

// The end of the page before.
struct reactions_page {
    uint32_t tag;
    int64_t count;
    int64_t page;
    int64_t before_ts;
    char before_channel[ID_SIZE];
};

// <event_ts>.<channel>
static bool take_page_start(struct invocation *invocation, struct reactions_page *page)
{
    const char *text = NULL;
    char end;

    page->before_ts = INT64_MAX;
    if (!take_cursor(invocation, "rl1", &text))
        return false;
    if (!text || sscanf(text, "%18" SCNd64 ".%20[A-Z0-9]%c", &page->before_ts, page->before_channel,
                        &end) == 2)
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_CURSOR,
                            "cursor: must be the next_cursor of an earlier reply");
    return false;
}

static struct reactions_page *take_reactions_page(struct invocation *invocation)
{
    struct reactions_page *page = TAGGED_NEW(reactions_page);

    if (!page) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return NULL;
    }
    invocation->state = page;
    page->count = LIST_DEFAULT;
    page->page = 1;
    if (!take_optional_int(invocation, "count", -ERROR_INVALID_ARGUMENTS, 1, LIST_MAX,
                           &page->count) ||
        !take_optional_int(invocation, "limit", -ERROR_INVALID_LIMIT, 1, LIST_MAX, &page->count) ||
        !take_optional_int(invocation, "page", -ERROR_INVALID_ARGUMENTS, 1, LIST_MAX,
                           &page->page) ||
        !take_page_start(invocation, page))
        return NULL;
    return page;
}

static void paging_write(struct json_writer *w, const struct reactions_page *page, int64_t total)
{
    json_key(w, "paging");
    json_open_object(w);
    json_key_int(w, "count", page->count);
    json_key_int(w, "total", total);
    json_key_int(w, "page", page->page);
    json_key_int(w, "pages", (total + page->count - 1) / page->count);
    json_close_object(w);
}

// After the last item shown, if there is another one; else after the last reaction looked at.
static void page_end_write(struct json_writer *w, const struct result *result, int shown)
{
    char text[ID_SIZE + 32] = "";
    bool has_more = shown < result_rows(result);

    if (has_more)
        snprintf(text, sizeof text, "%" PRId64 ".%s", result_int(result, shown - 1, LIST_EVENT_TS),
                 result_text(result, shown - 1, LIST_CHANNEL));
    else if (!result_is_null(result, 0, LIST_END_TS))
        snprintf(text, sizeof text, "%" PRId64 ".%s", result_int(result, 0, LIST_END_TS),
                 result_text(result, 0, LIST_END_CHANNEL));
    invocation_write_next_cursor(w, "rl1", text);
}

static void list_answer(struct invocation *invocation, const struct result *result)
{
    const struct reactions_page *page = CAST(reactions_page, invocation->state);
    int rows = result_rows(result);
    int shown = rows > page->count ? (int)page->count : rows;

    if (!invocation_succeeded(invocation, result))
        return;
    struct json_writer *w = invocation_open(invocation);
    json_key(w, "items");
    json_open_array(w);
    for (int row = 0; row < shown && !result_is_null(result, row, LIST_MESSAGE); row++) {
        struct message message;
        message_read(result, row, LIST_MESSAGE, &message);
        json_open_object(w);
        item_write(w, invocation, result_text(result, row, LIST_CHANNEL), &message);
        json_close_object(w);
    }
    json_close_array(w);
    paging_write(w, page, result_int(result, 0, LIST_TOTAL));
    page_end_write(w, result, shown);
    invocation_close(invocation);
}

void reactions_list(struct invocation *invocation)
{
    struct reactions_page *page = take_reactions_page(invocation);
    struct params params = {0};

    if (!page)
        return;
    const char *user_id = invocation->actor->user_id;
    if (invocation_has(invocation, "user") && !take_user(invocation, "user", &user_id))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, user_id);
    params_int(&params, page->before_ts);
    params_text(&params, page->before_channel);
    params_int(&params, (page->page - 1) * page->count);
    params_int(&params, page->count + 1);
    invocation_query(invocation, STORE_LIST, &LIST, &params, list_answer);
}
