// SPDX-License-Identifier: Apache-2.0
// rtm.connect, rtm.start and apps.connections.open: make the ticket and URL for a WebSocket.
#include "methods.h"

#include "base/clock.h"
#include "base/digest.h"
#include "unread/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICKET_MADE                                                                                \
    "WITH ticket AS (INSERT INTO tickets (digest, token_id, native, expires_at) VALUES ($1, $2,"   \
    " $3, now() + make_interval(secs => $5::bigint / 1000.0))) SELECT u.name, w.name, w.domain"

static const struct statement TICKET = {
    "ticket",
    TICKET_MADE " FROM users u JOIN workspaces w ON w.id = u.workspace_id WHERE u.id = $4",
};

// The same for an app, unless its events go to its events_url: from now on they are kept for it.
// No row: the app is no more, which the token is not known to be at once.
static const struct statement APP_TICKET = {
    "app_ticket",
    "WITH app AS (SELECT by_socket FROM app_linked((SELECT t.app_id FROM tokens t WHERE t.id = $2),"
    " $6)), "
    "ticket AS (INSERT INTO tickets (digest, token_id, native, expires_at) SELECT $1, $2, "
    "$3, now() + make_interval(secs => $5::bigint / 1000.0) FROM app WHERE by_socket)"
    " SELECT u.name, w.name, w.domain, app.by_socket FROM app, users u JOIN workspaces w "
    "ON w.id = u.workspace_id WHERE u.id = $4",
};
enum { COLUMN_USER_NAME, COLUMN_TEAM_NAME, COLUMN_DOMAIN, COLUMN_BY_SOCKET };

// The same with all that rtm.start lists, a row each.
static const struct statement START = {
    "start",
    TICKET_MADE ", l.list, l.object, " UNREAD_VIEW_SELECT(
        "r") " FROM users u JOIN workspaces w ON w.id = u.workspace_id"
             " CROSS JOIN LATERAL rtm_lists(u.workspace_id, u.id, $6) l"
             " LEFT JOIN unread_rows r ON r.channel_id = l.channel AND r.user_id = u.id"
             " WHERE u.id = $4 ORDER BY l.list, l.place",
};
enum { COLUMN_LIST = COLUMN_BY_SOCKET, COLUMN_OBJECT, COLUMN_VIEW };

// The lists of rtm.start, as rtm_lists() numbers them.
static const char *const lists[] = {"users", "channels", "groups", "mpims", "ims", "bots"};
enum { LISTS = sizeof lists / sizeof lists[0] };

// One entry: a channel of the caller's own with what they have unread there.
static void entry_write(struct json_writer *w, const struct result *result, int row)
{
    struct unread_view view;

    if (result_is_null(result, row, COLUMN_VIEW)) {
        json_raw(w, result_text(result, row, COLUMN_OBJECT),
                 result_length(result, row, COLUMN_OBJECT));
        return;
    }
    unread_view_read(result, row, COLUMN_VIEW, &view);
    json_raw(w, result_text(result, row, COLUMN_OBJECT),
             result_length(result, row, COLUMN_OBJECT) - 1); // without its brace
    unread_view_write_fields(w, &view);
    json_close_object(w);
}

// Writes the list whose rows begin at *row, and moves on to behind it. Whether it has all.
static bool list_write(struct json_writer *w, const struct result *result, int64_t list,
                       int64_t most, int *row)
{
    int64_t count = 0;

    json_key(w, lists[list]);
    json_open_array(w);
    for (; *row < result_rows(result) && result_int(result, *row, COLUMN_LIST) == list; ++*row)
        if (++count <= most)
            entry_write(w, result, *row);
    json_close_array(w);
    return count <= most;
}

static void lists_write(struct json_writer *w, const struct result *result, int64_t most)
{
    bool is_whole[LISTS];
    int row = 0;

    for (int64_t list = 0; list < LISTS; list++)
        is_whole[list] = list_write(w, result, list, most, &row);
    json_key(w, "subteams"); // there are none
    json_open_array(w);
    json_close_array(w);
    json_key(w, "truncated");
    json_open_array(w);
    for (int64_t list = 0; list < LISTS; list++)
        if (!is_whole[list])
            json_text(w, lists[list]);
    json_close_array(w);
    json_key(w, "dnd"); // nobody can be, so: never
    json_open_object(w);
    json_key_bool(w, "dnd_enabled", false);
    json_key_int(w, "next_dnd_start_ts", 1);
    json_key_int(w, "next_dnd_end_ts", 1);
    json_key_bool(w, "snooze_enabled", false);
    json_close_object(w);
    json_key_int(w, "cache_ts", clock_wall_us() / 1000000);
    json_key_ts(w, "latest_event_ts", clock_wall_us());
}

static void url_write(struct json_writer *w, const struct invocation *invocation)
{
    char base[512];
    char url[640];

    invocation_base_url(invocation, base, sizeof base);
    // http:// becomes ws://, https:// wss://
    snprintf(url, sizeof url, "ws%s%s/%s", strncmp(base, "http", 4) == 0 ? base + 4 : base,
             invocation->actor->type == 'a' ? "link" : "rtm", (const char *)invocation->state);
    json_key_string(w, "url", url);
}

static void self_write(struct json_writer *w, const struct invocation *invocation,
                       const struct result *result)
{
    json_key(w, "self");
    json_open_object(w);
    json_key_string(w, "id", invocation->actor->user_id);
    json_key_string(w, "name", result_text(result, 0, COLUMN_USER_NAME));
    json_close_object(w);
    json_key(w, "team");
    json_open_object(w);
    json_key_string(w, "id", invocation->actor->workspace_id);
    json_key_string(w, "name", result_text(result, 0, COLUMN_TEAM_NAME));
    json_key_string(w, "domain", result_text(result, 0, COLUMN_DOMAIN));
    json_close_object(w);
}

static void app_answer(struct invocation *invocation, const struct result *result)
{
    if (result_rows(result) == 0) {
        invocation_fail(invocation, -ERROR_INVALID_AUTH);
        return;
    }
    if (!result_bool(result, 0, COLUMN_BY_SOCKET)) {
        invocation_fail(invocation, -ERROR_NOT_ALLOWED_TOKEN_TYPE);
        return;
    }
    url_write(invocation_open(invocation), invocation);
    invocation_close(invocation);
}

static void connect_answer(struct invocation *invocation, const struct result *result)
{
    if (result_rows(result) == 0) {
        invocation_fail(invocation, -ERROR_INVALID_AUTH);
        return;
    }
    struct json_writer *w = invocation_open(invocation);
    url_write(w, invocation);
    self_write(w, invocation, result);
    if (strcmp(request_method(invocation->request), "rtm.start") == 0)
        lists_write(w, result, invocation->api->options.start_max);
    invocation_close(invocation);
}

// Makes a ticket and begins the parameters of the statement that keeps it.
static bool ticket_make(struct invocation *invocation, struct params *params)
{
    char digest[DIGEST_HEX_SIZE];
    bool native = false;

    if (!take_optional_bool(invocation, "native", &native))
        return false;
    char *ticket = calloc(1, TOKEN_SIZE);
    if (!ticket) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return false;
    }
    invocation->state = ticket;
    token_make("t", ticket);
    digest_sha256_hex(ticket, strlen(ticket), digest);
    params_text(params, digest);
    params_text(params, invocation->actor->token_id);
    params_bool(params, native);
    params_text(params, invocation->actor->user_id);
    params_int(params, invocation->api->options.ticket_ms);
    return true;
}

// A single-use ticket for a socket, good on every instance for a short time.
void rtm_connect(struct invocation *invocation)
{
    struct params params = {0};

    if (ticket_make(invocation, &params))
        invocation_query(invocation, STORE_WRITE, &TICKET, &params, connect_answer);
}

// The same with lists of all that old clients want to know at once.
void rtm_start(struct invocation *invocation)
{
    struct params params = {0};

    if (!ticket_make(invocation, &params))
        return;
    params_int(&params, invocation->api->options.start_max);
    invocation_query(invocation, STORE_MANY, &START, &params, connect_answer);
}

// A ticket for a connection of an app (Socket Mode).
void apps_connections_open(struct invocation *invocation)
{
    struct params params = {0};

    if (!ticket_make(invocation, &params))
        return;
    params_int(&params, invocation->api->options.link_keep_s);
    invocation_query(invocation, STORE_WRITE, &APP_TICKET, &params, app_answer);
}
