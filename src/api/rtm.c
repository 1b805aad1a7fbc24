// SPDX-License-Identifier: Apache-2.0
// rtm.connect, rtm.start and apps.connections.open: issue the ticket and URL for a WebSocket.
#include "methods.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "gateway/gateway.h"
#include "store/session.h"
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

// Likewise for an app, unless its events go to its events_url: from now on events are kept for it.
// No row: the app was deleted, which the token cache does not know yet.
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

// Likewise with everything that rtm.start lists, one row per entry.
static const struct statement START = {
    "start",
    TICKET_MADE ", l.list, l.object, " UNREAD_VIEW_SELECT(
        "r") " FROM users u JOIN workspaces w ON w.id = u.workspace_id"
             " CROSS JOIN LATERAL rtm_lists(u.workspace_id, u.id, $6, $7) l"
             " LEFT JOIN unread_rows r ON r.channel_id = l.channel AND r.user_id = u.id"
             " WHERE u.id = $4 ORDER BY l.list, l.place",
};
enum { COLUMN_LIST = COLUMN_BY_SOCKET, COLUMN_OBJECT, COLUMN_VIEW };

// The lists of rtm.start, numbered like those of rtm_lists().
static const char *const lists[] = {"users", "channels", "groups", "mpims", "ims", "bots"};
enum { LISTS = sizeof lists / sizeof lists[0], ENTRIES_A_TURN = 300 };

// The state of a call: for rtm.start until all lists are written, otherwise the contents of the
// URL.
struct start {
    uint32_t tag;
    char ticket[TOKEN_SIZE];
    char since[GATEWAY_POSITION_SIZE]; // where the socket resumes; "": it starts now
    struct result *result;
    struct json_writer *w;
    int row;       // the next one
    int64_t list;  // the current one
    int64_t count; // of its entries so far
    bool is_whole[LISTS];
};

// One entry: a channel of the caller, with its unread state.
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

static void list_open(struct start *start)
{
    json_key(start->w, lists[start->list]);
    json_open_array(start->w);
}

static void list_close(struct start *start, int64_t most)
{
    json_close_array(start->w);
    start->is_whole[start->list] = start->count <= most;
    start->count = 0;
    if (++start->list < LISTS)
        list_open(start);
}

// Writes more of the lists, up to a turn's share. Returns whether all are written.
static bool lists_advance(struct start *start, int64_t most)
{
    for (int left = ENTRIES_A_TURN; start->list < LISTS; left--) {
        if (left == 0)
            return false;
        if (start->row == result_rows(start->result) ||
            result_int(start->result, start->row, COLUMN_LIST) != start->list) {
            list_close(start, most);
            continue;
        }
        if (++start->count <= most)
            entry_write(start->w, start->result, start->row);
        start->row++;
    }
    return true;
}

static void rest_write(struct json_writer *w, const bool *is_whole)
{
    json_key(w, "subteams"); // always empty
    json_open_array(w);
    json_close_array(w);
    json_key(w, "truncated");
    json_open_array(w);
    for (int64_t list = 0; list < LISTS; list++)
        if (!is_whole[list])
            json_text(w, lists[list]);
    json_close_array(w);
    json_key(w, "dnd"); // not reported here: see dnd.info
    json_open_object(w);
    json_key_bool(w, "dnd_enabled", false);
    json_key_int(w, "next_dnd_start_ts", 1);
    json_key_int(w, "next_dnd_end_ts", 1);
    json_key_bool(w, "snooze_enabled", false);
    json_close_object(w);
    json_key_int(w, "cache_ts", clock_wall_us() / 1000000);
    json_key_ts(w, "latest_event_ts", clock_wall_us());
}

// Writes a part per turn, so that others are served in between.
static void lists_write(void *arg)
{
    struct invocation *invocation = CAST(invocation, arg);
    struct start *start = CAST(start, invocation->state);

    while (!lists_advance(start, invocation->api->options.settings.start_max))
        if (loop_post(invocation->api->loop, lists_write, invocation) == 0)
            return;
    rest_write(start->w, start->is_whole);
    result_free(start->result);
    invocation_close(invocation);
}

static void url_write(struct json_writer *w, const struct invocation *invocation)
{
    const struct start *start = CAST(start, invocation->state);
    char base[512];
    char url[640 + GATEWAY_POSITION_SIZE];

    invocation_base_url(invocation, base, sizeof base);
    // http:// becomes ws://, https:// becomes wss://
    snprintf(url, sizeof url, "ws%s%s/%s%s%s", strncmp(base, "http", 4) == 0 ? base + 4 : base,
             invocation->actor->type == 'a' ? "link" : "rtm", start->ticket,
             start->since[0] ? "?since=" : "", start->since);
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

// The common start of both replies. NULL: the user no longer exists, and an error was replied.
static struct json_writer *connect_open(struct invocation *invocation, const struct result *result)
{
    if (result_rows(result) == 0) {
        invocation_fail(invocation, -ERROR_INVALID_AUTH);
        return NULL;
    }
    struct json_writer *w = invocation_open(invocation);
    url_write(w, invocation);
    self_write(w, invocation, result);
    return w;
}

static void connect_answer(struct invocation *invocation, const struct result *result)
{
    if (connect_open(invocation, result))
        invocation_close(invocation);
}

static void start_answer(struct invocation *invocation, const struct result *result)
{
    struct start *start = CAST(start, invocation->state);
    struct json_writer *w = connect_open(invocation, result);

    if (!w)
        return;
    start->w = w;
    start->result = invocation_take_rows(invocation);
    list_open(start);
    lists_write(invocation);
}

// Creates a ticket, and begins the parameters of the statement that stores it.
static bool ticket_make(struct invocation *invocation, struct params *params)
{
    char digest[DIGEST_HEX_SIZE];
    bool native = false;

    if (!take_optional_bool(invocation, "native", &native))
        return false;
    struct start *start = TAGGED_NEW(start);
    if (!start) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return false;
    }
    invocation->state = start;
    request_set_secret(invocation->request);
    token_make("t", start->ticket);
    digest_sha256_hex(start->ticket, strlen(start->ticket), digest);
    params_text(params, digest);
    params_text(params, invocation->actor->token_id);
    params_bool(params, native);
    params_text(params, invocation->actor->user_id);
    params_int(params, invocation->api->options.settings.ticket_ms);
    return true;
}

// Reads where the socket resumes. This is stored in the URL, not with the ticket.
static bool since_take(struct invocation *invocation, char *ret_since)
{
    const char *since = NULL;

    if (!take_optional_word(invocation, "since", &since))
        return false;
    if (!since || gateway_position_take(invocation->actor->user_id, since, ret_since) == 0)
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_POSITION,
                            "since: must be a position from an earlier reply");
    return false;
}

// Likewise for a client's socket, which may resume where another ended.
static bool client_ticket_make(struct invocation *invocation, struct params *params)
{
    char since[GATEWAY_POSITION_SIZE] = "";

    if (!since_take(invocation, since) || !ticket_make(invocation, params))
        return false;
    memcpy(CAST(start, invocation->state)->since, since, sizeof since);
    return true;
}

// Issues a single-use ticket for a socket, valid on all instances for a short time.
void rtm_connect(struct invocation *invocation)
{
    struct params params = {0};

    if (client_ticket_make(invocation, &params))
        invocation_query(invocation, STORE_WRITE, &TICKET, &params, connect_answer);
}

// Likewise, with the lists that old clients expect.
void rtm_start(struct invocation *invocation)
{
    struct params params = {0};

    if (!client_ticket_make(invocation, &params))
        return;
    params_int(&params, invocation->api->options.settings.start_max);
    params_bool(&params, actor_reads_email(invocation->actor));
    invocation_query(invocation, STORE_MANY, &START, &params, start_answer);
}

// Issues a ticket for an app's connection (Socket Mode).
void apps_connections_open(struct invocation *invocation)
{
    struct params params = {0};

    if (!ticket_make(invocation, &params))
        return;
    params_int(&params, invocation->api->options.app_socket_keep_s);
    invocation_query(invocation, STORE_WRITE, &APP_TICKET, &params, app_answer);
}
