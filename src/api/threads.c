// SPDX-License-Identifier: Apache-2.0
// threads.*: follows, marks and lists threads. Each change is one function of sql/08_threads.sql.
#include "methods.h"

#include "chat/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 1000 };

static const struct statement MARK = {"threads_mark",
                                      "SELECT * FROM threads_mark($1, $2, $3, $4, $5, $6)"};
static const struct statement FOLLOW = {"threads_follow",
                                        "SELECT * FROM threads_follow($1, $2, $3, $4, $5)"};
static const struct statement UNFOLLOW = {"threads_unfollow",
                                          "SELECT * FROM threads_unfollow($1, $2, $3, $4, $5)"};

static bool take_thread(struct invocation *invocation, const char **ret_channel_id,
                        int64_t *ret_thread_ts)
{
    return take_channel(invocation, ret_channel_id) &&
           take_ts(invocation, "thread_ts", -ERROR_INVALID_TIMESTAMP, ret_thread_ts);
}

void threads_mark(struct invocation *invocation)
{
    struct params params = {0};
    const char *channel_id;
    int64_t thread_ts;
    int64_t ts;

    if (!take_thread(invocation, &channel_id, &thread_ts) ||
        !take_ts(invocation, "ts", -ERROR_INVALID_TIMESTAMP, &ts))
        return;
    invocation_change_params(invocation, &params);
    params_text(&params, channel_id);
    params_int(&params, thread_ts);
    params_int(&params, ts);
    invocation_change(invocation, &MARK, &params, true);
}

static void thread_change(struct invocation *invocation, const struct statement *statement)
{
    struct params params = {0};
    const char *channel_id;
    int64_t thread_ts;

    if (!take_thread(invocation, &channel_id, &thread_ts))
        return;
    invocation_change_params(invocation, &params);
    params_text(&params, channel_id);
    params_int(&params, thread_ts);
    invocation_change(invocation, statement, &params, true);
}

void threads_follow(struct invocation *invocation)
{
    thread_change(invocation, &FOLLOW);
}

void threads_unfollow(struct invocation *invocation)
{
    thread_change(invocation, &UNFOLLOW);
}

static const struct statement LIST = {
    "threads_list",
    "SELECT t.unread_count, t.mention_count, l.as_of, l.channel_id, l.thread_ts, l.unread, "
    "l.activity, l.latest_reply, l.state, " MESSAGE_SELECT("r", "$2") ", " MESSAGE_READER_SELECT(
        "v") " FROM thread_totals($1, $2) t"
             " LEFT JOIN threads_list($1, $2, $3, $4, $5, $6, $7, $8, $9::integer) l ON true"
             " LEFT JOIN message_rows r ON r.channel_id = l.channel_id AND r.ts = l.thread_ts"
             " LEFT JOIN thread_rows v ON v.channel_id = l.channel_id AND v.thread_ts = "
             "l.thread_ts AND v.user_id = $2"
             " ORDER BY l.unread DESC, l.activity DESC, l.channel_id COLLATE \"C\", l.thread_ts"};
enum {
    COLUMN_TOTAL_UNREAD,
    COLUMN_TOTAL_MENTIONS,
    COLUMN_AS_OF,
    COLUMN_CHANNEL,
    COLUMN_THREAD,
    COLUMN_UNREAD,
    COLUMN_ACTIVITY,
    COLUMN_LATEST,
    COLUMN_STATE,
    COLUMN_MESSAGE,
    COLUMN_READER = COLUMN_MESSAGE + MESSAGE_COLUMNS
};

// Where the previous page ended, and its point in time.
struct list_page {
    int64_t as_of;
    int64_t unread;
    int64_t activity;
    int64_t thread_ts;
    char channel_id[ID_SIZE];
};

enum { PAGE_SIZE = 128 };

static void page_print(const struct list_page *page, char *ret_text)
{
    snprintf(ret_text, PAGE_SIZE, "%" PRId64 ".%" PRId64 ".%" PRId64 ".%" PRId64 ".%s", page->as_of,
             page->unread, page->activity, page->thread_ts, page->channel_id);
}

static bool page_parse(const char *text, struct list_page *ret_page)
{
    char again[PAGE_SIZE];

    if (sscanf(text, "%16" SCNd64 ".%1" SCNd64 ".%16" SCNd64 ".%16" SCNd64 ".%20[A-Z0-9]",
               &ret_page->as_of, &ret_page->unread, &ret_page->activity, &ret_page->thread_ts,
               ret_page->channel_id) != 5)
        return false;
    page_print(ret_page, again);
    return strcmp(again, text) == 0 && ret_page->as_of > 0 && // accept only what we print
           id_is_valid(ret_page->channel_id, "CGD");
}

static void entry_write(struct json_writer *w, const struct invocation *invocation,
                        const struct result *result, int row)
{
    struct message root;

    message_read(result, row, COLUMN_MESSAGE, &root);
    message_read_reader(result, row, COLUMN_READER, &root);
    json_open_object(w);
    buffer_append(w->out, result_text(result, row, COLUMN_STATE) + 1,
                  result_length(result, row, COLUMN_STATE) - 2);
    w->comma = true;
    json_key(w, "root");
    message_write(w, &root, invocation->actor->workspace_id);
    if (result_int(result, row, COLUMN_LATEST) > 0)
        json_key_ts(w, "latest_reply", result_int(result, row, COLUMN_LATEST));
    json_close_object(w);
}

static void totals_write(struct json_writer *w, const struct result *result)
{
    int64_t unread = result_int(result, 0, COLUMN_TOTAL_UNREAD);

    json_key(w, "totals");
    json_open_object(w);
    json_key_bool(w, "has_unreads", unread > 0);
    json_key_int(w, "unread_count", unread);
    json_key_int(w, "mention_count", result_int(result, 0, COLUMN_TOTAL_MENTIONS));
    json_close_object(w);
}

// `row`: the last one of the page; negative: there is no other page.
static void page_write(struct json_writer *w, const struct result *result, int row)
{
    char text[PAGE_SIZE] = "";

    if (row >= 0) {
        struct list_page page = {.as_of = result_int(result, row, COLUMN_AS_OF),
                                 .unread = result_bool(result, row, COLUMN_UNREAD),
                                 .activity = result_int(result, row, COLUMN_ACTIVITY),
                                 .thread_ts = result_int(result, row, COLUMN_THREAD)};
        snprintf(page.channel_id, sizeof page.channel_id, "%s",
                 result_text(result, row, COLUMN_CHANNEL));
        page_print(&page, text);
    }
    invocation_write_next_cursor(w, "t1", text);
}

static void list_answer(struct invocation *invocation, const struct result *result)
{
    const int64_t *limit = invocation->state;
    int rows = result_is_null(result, 0, COLUMN_CHANNEL) ? 0 : result_rows(result);
    bool has_more = rows > *limit;

    rows = has_more ? (int)*limit : rows;
    struct json_writer *w = invocation_open(invocation);
    json_key(w, "threads");
    json_open_array(w);
    for (int row = 0; row < rows; row++)
        entry_write(w, invocation, result, row);
    json_close_array(w);
    totals_write(w, result);
    page_write(w, result, has_more ? rows - 1 : -1);
    invocation_close(invocation);
}

static bool take_list_page(struct invocation *invocation, bool *unread_only, int64_t *limit,
                           struct list_page *page)
{
    const char *text = NULL;

    if (!take_optional_bool(invocation, "unread_only", unread_only) ||
        !take_limit(invocation, LIMIT_MAX, limit) || !take_cursor(invocation, "t1", &text))
        return false;
    if (!text || page_parse(text, page))
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_CURSOR,
                            "cursor: must be the next_cursor of an earlier reply");
    return false;
}

void threads_list(struct invocation *invocation)
{
    struct params params = {0};
    struct list_page page = {0};
    bool unread_only = false;
    int64_t *limit = malloc(sizeof *limit);

    if (!limit) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    invocation->state = limit;
    *limit = LIMIT_DEFAULT;
    if (!take_list_page(invocation, &unread_only, limit, &page))
        return;
    invocation_caller_params(invocation, &params);
    params_bool(&params, unread_only);
    params_int(&params, page.as_of);
    params_bool(&params, page.unread != 0);
    params_int(&params, page.activity);
    params_text(&params, page.channel_id);
    params_int(&params, page.thread_ts);
    params_int(&params, *limit + 1);
    invocation_query(invocation, STORE_LIST, &LIST, &params, list_answer);
}
