// SPDX-License-Identifier: Apache-2.0
// unread.sync: all that a sidebar needs, in one call; with a token of an earlier one, only what changed since.
//
// A sync token names a snapshot of Postgres: "s1.<xid>.<seconds>". Every transaction below that xid had ended, so its effects are
// in the answer; all others are looked at again by the next call. Nothing is missed whatever was being committed.
#include "methods.h"

#include "base/clock.h"
#include "chat/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS                                                                                    \
    "token, unread_channels, unread_count, muted_unread, id, name, is_private, gone, epoch, ts, seq, updated, latest_ts,"      \
    " latest_user, latest_preview, unread, muted"
static const struct statement SYNC = {"unread_sync", "SELECT " COLUMNS " FROM unread_sync($1, $2, NULL, $3::integer, $4, $5, $6)"};
static const struct statement SYNC_SINCE = {
    "unread_sync_since", "SELECT " COLUMNS " FROM unread_sync($1, $2, $7::xid8, $3::integer, $4, $5, $6)"};
enum { COLUMN_TOKEN, COLUMN_UNREAD_CHANNELS, COLUMN_UNREAD_COUNT, COLUMN_MUTED_UNREAD, COLUMN_ID, COLUMN_NAME, COLUMN_PRIVATE, COLUMN_GONE,
       COLUMN_EPOCH, COLUMN_TS, COLUMN_SEQ, COLUMN_UPDATED, COLUMN_LATEST_TS, COLUMN_LATEST_USER, COLUMN_LATEST_PREVIEW, COLUMN_UNREAD,
       COLUMN_MUTED };

enum { LIMIT_MAX = 1000, TOKEN_DAYS_MAX = 30, TOKEN_TEXT_SIZE = 64 };
#define DAY_US (86400LL * 1000000)

struct sync_token {
    int64_t xid;
    int64_t seconds;
};

// Where the page before ended; with the token that the first page gave.
struct sync_page {
    struct sync_token token;
    bool unread;
    int64_t updated;
    char id[ID_SIZE];
};

struct sync {
    bool has_since;
    struct sync_token since;
    bool has_page;
    struct sync_page page;
    int64_t limit; // 0: all
    bool public_ones;
    bool private_ones;
    bool with_badges; // client.counts
};

static bool token_parse(const char *text, struct sync_token *ret_token)
{
    char again[TOKEN_TEXT_SIZE];

    if (sscanf(text, "s1.%" SCNd64 ".%" SCNd64, &ret_token->xid, &ret_token->seconds) != 2 || ret_token->xid < 0)
        return false;
    snprintf(again, sizeof again, "s1.%" PRId64 ".%" PRId64, ret_token->xid, ret_token->seconds);
    return strcmp(again, text) == 0; // nothing but what we print
}

static bool page_parse(const char *text, struct sync_page *ret_page)
{
    int unread;
    int end = 0;

    if (sscanf(text, "%" SCNd64 ".%" SCNd64 ".%1d.%" SCNd64 ".%20[A-Z0-9]%n", &ret_page->token.xid, &ret_page->token.seconds, &unread,
               &ret_page->updated, ret_page->id, &end) != 5 ||
        text[end] != '\0' || !id_is_valid(ret_page->id, "CGD"))
        return false;
    ret_page->unread = unread != 0;
    return true;
}

static bool take_since(struct invocation *invocation, struct sync *sync)
{
    const char *text = NULL;

    if (!take_optional_text(invocation, "since", &text))
        return false;
    if (text == NULL || text[0] == '\0')
        return true;
    if (!token_parse(text, &sync->since)) {
        invocation_complain(invocation, -ERROR_INVALID_ARGUMENTS, "since: must be the sync_token of an earlier reply");
        return false;
    }
    // A token too old to be trusted with retention gives a full answer.
    sync->has_since = sync->since.seconds > clock_wall_us() / 1000000 - TOKEN_DAYS_MAX * (DAY_US / 1000000);
    return true;
}

static bool take_sync(struct invocation *invocation, struct sync *sync)
{
    const char *page = NULL;

    sync->public_ones = true;
    sync->private_ones = true;
    if (!take_since(invocation, sync) || !take_optional_int(invocation, "limit", -ERROR_INVALID_LIMIT, 1, LIMIT_MAX, &sync->limit) ||
        !take_cursor(invocation, "p1", &page))
        return false;
    if (request_arg(invocation->request, "types") != NULL && !take_types(invocation, &sync->public_ones, &sync->private_ones))
        return false;
    sync->has_page = page != NULL;
    if (page == NULL || page_parse(page, &sync->page))
        return true;
    invocation_complain(invocation, -ERROR_INVALID_CURSOR, "cursor: must be the next_cursor of an earlier reply");
    return false;
}

static void channel_write(struct json_writer *w, const struct sync *sync, const struct result *result, int row)
{
    int64_t unread = result_int(result, row, COLUMN_UNREAD);

    json_open_object(w);
    json_key_string(w, "id", result_text(result, row, COLUMN_ID));
    json_key_string(w, "name", result_text(result, row, COLUMN_NAME));
    json_key_bool(w, "is_private", result_bool(result, row, COLUMN_PRIVATE));
    json_key_ts(w, "last_read", result_int(result, row, COLUMN_TS));
    json_key_ts(w, "latest", result_int(result, row, COLUMN_LATEST_TS));
    json_key_string(w, "latest_user", result_text(result, row, COLUMN_LATEST_USER));
    json_key_string(w, "latest_preview", result_text(result, row, COLUMN_LATEST_PREVIEW));
    json_key_int(w, "seq", result_int(result, row, COLUMN_SEQ));
    json_key_ts(w, "updated", result_int(result, row, COLUMN_UPDATED));
    json_key_int(w, "read_epoch", result_int(result, row, COLUMN_EPOCH));
    json_key_bool(w, "has_unreads", unread > 0);
    json_key_int(w, "unread_count", unread);
    json_key_int(w, "unread_count_display", unread);
    json_key_bool(w, "unread_capped", false);
    json_key_int(w, "mention_count", 0);
    json_key_bool(w, "is_muted", result_bool(result, row, COLUMN_MUTED));
    if (sync->with_badges)
        json_key_ts(w, "history_invalid", 0);
    json_close_object(w);
}

static bool row_is_asked(const struct sync *sync, const struct result *result, int row)
{
    return result_bool(result, row, COLUMN_PRIVATE) ? sync->private_ones : sync->public_ones;
}

static void channels_write(struct json_writer *w, const struct sync *sync, const struct result *result, int rows)
{
    json_key(w, "channels");
    json_open_array(w);
    for (int row = 0; row < rows; row++)
        if (!result_bool(result, row, COLUMN_GONE) && row_is_asked(sync, result, row))
            channel_write(w, sync, result, row);
    json_close_array(w);
    json_key(w, "mpims");
    json_open_array(w);
    json_close_array(w);
    json_key(w, "ims");
    json_open_array(w);
    json_close_array(w);
    json_key(w, "removed");
    json_open_array(w);
    for (int row = 0; row < rows; row++)
        if (result_bool(result, row, COLUMN_GONE))
            json_text(w, result_text(result, row, COLUMN_ID));
    json_close_array(w);
}

static void totals_write(struct json_writer *w, const struct result *result)
{
    json_key(w, "threads");
    json_open_object(w);
    json_key_bool(w, "has_unreads", false);
    json_key_int(w, "unread_count", 0);
    json_key_int(w, "mention_count", 0);
    json_close_object(w);
    json_key(w, "totals");
    json_open_object(w);
    json_key_int(w, "unread_channels", result_int(result, 0, COLUMN_UNREAD_CHANNELS));
    json_key_int(w, "unread_count", result_int(result, 0, COLUMN_UNREAD_COUNT));
    json_key_int(w, "mention_count", 0);
    json_key_int(w, "muted_unread_count", result_int(result, 0, COLUMN_MUTED_UNREAD));
    json_close_object(w);
}

// What Slack's own clients look for in client.counts.
static void badges_write(struct json_writer *w, const struct result *result)
{
    json_key(w, "channel_badges");
    json_open_object(w);
    json_key_int(w, "channels", result_int(result, 0, COLUMN_UNREAD_CHANNELS));
    json_key_int(w, "dms", 0);
    json_key_int(w, "app_dms", 0);
    json_key_int(w, "thread_mentions", 0);
    json_key_int(w, "thread_unreads", 0);
    json_close_object(w);
    json_key(w, "alerts");
    json_open_object(w);
    json_close_object(w);
    json_key(w, "saved");
    json_open_object(w);
    json_key_int(w, "uncompleted_count", 0);
    json_key_int(w, "uncompleted_overdue_count", 0);
    json_close_object(w);
}

static void page_write(struct json_writer *w, const struct sync_token *token, const struct result *result, int rows, bool has_more)
{
    char text[128] = "";

    if (has_more) {
        int last = rows - 1;
        bool unread = result_int(result, last, COLUMN_UNREAD) > 0 && !result_bool(result, last, COLUMN_MUTED);
        snprintf(text, sizeof text, "%" PRId64 ".%" PRId64 ".%d.%" PRId64 ".%s", token->xid, token->seconds, unread,
                 result_int(result, last, COLUMN_UPDATED), result_text(result, last, COLUMN_ID));
    }
    write_next_cursor(w, "p1", text);
}

static void sync_ask(struct invocation *invocation);

static void sync_answer(struct invocation *invocation, const struct result *result)
{
    struct sync *sync = invocation->state;
    struct sync_token token = {.xid = result_int(result, 0, COLUMN_TOKEN), .seconds = clock_wall_us() / 1000000};
    char text[TOKEN_TEXT_SIZE];

    if (sync->has_since && sync->since.xid > token.xid) { // of another database: nothing can be told by it
        sync->has_since = false;
        sync_ask(invocation);
        return;
    }
    if (sync->has_page)
        token = sync->page.token; // later pages know more, but not of what earlier ones showed
    int rows = result_is_null(result, 0, COLUMN_ID) ? 0 : result_rows(result);
    bool has_more = sync->limit > 0 && rows > sync->limit;
    rows = has_more ? rows - 1 : rows;
    snprintf(text, sizeof text, "s1.%" PRId64 ".%" PRId64, token.xid, token.seconds);
    struct json_writer *w = invocation_open(invocation);
    json_key_bool(w, "full", !sync->has_since);
    json_key_string(w, "sync_token", text);
    channels_write(w, sync, result, rows);
    totals_write(w, result);
    if (sync->with_badges)
        badges_write(w, result);
    page_write(w, &token, result, rows, has_more);
    invocation_close(invocation);
}

static void sync_ask(struct invocation *invocation)
{
    const struct sync *sync = invocation->state;
    struct params params = {0};
    char xid[24];

    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, invocation->actor->user_id);
    params_int(&params, sync->limit > 0 ? sync->limit + 1 : INT32_MAX);
    params_bool(&params, sync->page.unread);
    params_int(&params, sync->page.updated);
    params_text(&params, sync->has_page ? sync->page.id : NULL);
    if (sync->has_since) {
        snprintf(xid, sizeof xid, "%" PRId64, sync->since.xid);
        params_text(&params, xid);
    }
    invocation_query(invocation, STORE_SYNC, sync->has_since ? &SYNC_SINCE : &SYNC, &params, sync_answer);
}

static void sync_begin(struct invocation *invocation, bool with_badges)
{
    struct sync *sync = calloc(1, sizeof *sync);

    if (sync == NULL) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    invocation->state = sync;
    sync->with_badges = with_badges;
    if (take_sync(invocation, sync))
        sync_ask(invocation);
}

void unread_sync(struct invocation *invocation)
{
    sync_begin(invocation, false);
}

void client_counts(struct invocation *invocation)
{
    sync_begin(invocation, true);
}
