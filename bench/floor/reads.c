// SPDX-License-Identifier: Apache-2.0
// What an answer that is read from Postgres costs at the least: one prepared select a request, in
// one connection's pipeline, and its rows' bytes behind a bare reply. No token is checked.
#include "floor.h"
#include "server.h"

#include "../load/input.h"

#include <jansson.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define PARAM_COUNT 2

// The least that channels.info shows: the channel with its head, and the caller's cursor in it.
static const char info_sql[] =
    "SELECT c.id, c.name, c.type, c.is_archived, c.creator, c.created, c.topic, c.purpose,"
    " c.member_count, c.seq, c.ord, c.latest_ts, c.latest_user, c.latest_preview,"
    " m.ts, m.seq, m.ord, m.own, m.posts, m.mention_ts"
    " FROM channels c JOIN channel_members m ON m.channel_id = c.id"
    " WHERE c.id = $1 AND m.user_id = $2 AND m.active";

// The least that unread.sync shows, of all channels of the caller's or of some.
#define SYNC_SQL                                                                                   \
    "SELECT c.id, c.name, c.type, c.seq, c.ord, c.latest_ts, c.latest_user, c.latest_preview,"     \
    " m.ts, m.seq, m.ord, m.own, m.posts, m.muted, m.mention_ts"                                   \
    " FROM channel_members m JOIN channels c ON c.id = m.channel_id"                               \
    " WHERE m.user_id = $2 AND m.active"
static const char sync_sql[] = SYNC_SQL " AND $1::text IS NULL";
static const char some_sql[] = SYNC_SQL " AND m.channel_id = ANY ($1::text[])";

struct user {
    const char *token; // key, borrowed
    const char *id;
    UT_hash_handle hh;
};

struct floor {
    struct server *server;
    PGconn *pg;
    struct server_watch watch;
    struct server_queue under_way;
    struct input input;
    struct user *list;
    struct user *by_token;
};

static _Noreturn void die(struct floor *floor)
{
    tool_die("postgres: %s", PQerrorMessage(floor->pg));
}

static void index_users(struct floor *floor, const char *data_path)
{
    input_read(&floor->input, data_path, NULL);
    floor->list = tool_alloc(floor->input.user_count, sizeof(*floor->list));
    for (size_t i = 0; i < floor->input.user_count; i++) {
        struct user *user = &floor->list[i];

        *user = (struct user){.token = floor->input.users[i].token, .id = floor->input.users[i].id};
        HASH_ADD_KEYPTR(hh, floor->by_token, user->token, strlen(user->token), user);
    }
}

static const char *caller_id(const struct floor *floor, const struct server_request *request)
{
    const char *token = server_request_token(request);
    struct user *user;

    HASH_FIND_STR(floor->by_token, token, user);
    if (!user)
        tool_die("a token that is not in the set-up");
    return user->id;
}

static void flush(struct floor *floor)
{
    int r = PQflush(floor->pg);

    if (r < 0)
        die(floor);
    server_watch_writes(floor->server, &floor->watch, r > 0);
}

static void ask(struct floor *floor, const char *statement, const char *what, const char *user)
{
    const char *values[PARAM_COUNT] = {what, user};

    if (!PQsendQueryPrepared(floor->pg, statement, PARAM_COUNT, values, NULL, NULL, 0) ||
        !PQpipelineSync(floor->pg))
        die(floor);
    flush(floor);
}

// {"channel":C}: of that one. {"some":"{C,…}"}: what of these unread.sync shows. Else of all.
static void on_request(void *owner, struct server_request *request, const char *url)
{
    struct floor *floor = owner;
    json_t *json = json_loadb(request->body, request->body_len, 0, NULL);
    const char *channel = json_string_value(json_object_get(json, "channel"));
    const char *some = json_string_value(json_object_get(json, "some"));
    const char *user = caller_id(floor, request);

    (void)url;
    if (channel)
        ask(floor, "info", channel, user);
    else
        ask(floor, some ? "some" : "sync", some, user);
    server_queue_push(&floor->under_way, request);
    json_decref(json);
}

static size_t rows_size(const PGresult *result)
{
    size_t size = 0;

    for (int row = 0; row < PQntuples(result); row++)
        for (int column = 0; column < PQnfields(result); column++)
            size += (size_t)PQgetlength(result, row, column) + 3;
    return size + (size_t)PQntuples(result) * 3;
}

static char *write_row(char *to, const PGresult *result, int row)
{
    for (int column = 0; column < PQnfields(result); column++) {
        size_t len = (size_t)PQgetlength(result, row, column);

        *to++ = column == 0 ? '[' : ',';
        *to++ = '"';
        memcpy(to, PQgetvalue(result, row, column), len);
        to += len;
        *to++ = '"';
    }
    *to++ = ']';
    return to;
}

// Nothing in the set-up's rows needs an escape.
static void answer(struct server_request *request, const PGresult *result)
{
    static const char start[] = "{\"ok\":true,\"rows\":[";
    size_t room = rows_size(result) + sizeof(start) + 2;
    char *reply = request->reply, *to;

    if (room > sizeof(request->reply))
        reply = request->long_reply = malloc(room);
    if (!reply)
        tool_die("out of memory");
    memcpy(reply, start, sizeof(start) - 1);
    to = reply + sizeof(start) - 1;
    for (int row = 0; row < PQntuples(result); row++) {
        if (row > 0)
            *to++ = ',';
        to = write_row(to, result, row);
    }
    memcpy(to, "]}", 2);
    request->reply_len = (size_t)(to + 2 - reply);
    server_answer(request);
}

static void on_postgres(void *owner)
{
    struct floor *floor = owner;

    if (!PQconsumeInput(floor->pg))
        die(floor);
    flush(floor);
    while (floor->under_way.count > 0 && !PQisBusy(floor->pg)) {
        PGresult *result = PQgetResult(floor->pg);

        if (result && PQresultStatus(result) == PGRES_TUPLES_OK)
            answer(server_queue_pop(&floor->under_way), result);
        else if (result && PQresultStatus(result) != PGRES_PIPELINE_SYNC)
            die(floor);
        PQclear(result);
    }
}

static void prepare(struct floor *floor, const char *name, const char *sql)
{
    PGresult *result = PQprepare(floor->pg, name, sql, 0, NULL);

    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        die(floor);
    PQclear(result);
}

static void connect_to(struct floor *floor, const char *database_url)
{
    floor->pg = PQconnectdb(database_url);
    if (PQstatus(floor->pg) != CONNECTION_OK)
        die(floor);
    PQclear(PQexec(floor->pg, "SET jit = off; SET max_parallel_workers_per_gather = 0"));
    prepare(floor, "sync", sync_sql);
    prepare(floor, "some", some_sql);
    prepare(floor, "info", info_sql);
    if (PQsetnonblocking(floor->pg, 1) != 0 || PQenterPipelineMode(floor->pg) != 1)
        die(floor);
}

static void start(struct floor *floor, const struct tool_args *args)
{
    struct server_plan plan = {
        .request_bytes = sizeof(struct server_request), .on_request = on_request, .owner = floor};
    const char *data_path = tool_args_text(args, "data", NULL);

    if (!data_path)
        tool_die("--data names the file of the set-up");
    index_users(floor, data_path);
    connect_to(floor, tool_args_text(args, "database", ""));
    server_queue_init(&floor->under_way);
    floor->server = server_new(tool_args_number(args, "port", 9000, 1, UINT16_MAX), &plan);
    floor->watch =
        (struct server_watch){.fd = PQsocket(floor->pg), .on_ready = on_postgres, .owner = floor};
    server_watch_add(floor->server, &floor->watch);
}

void floor_reads(const struct tool_args *args)
{
    struct floor *floor = tool_alloc(1, sizeof(*floor));

    start(floor, args);
    floor_say_ready();
    while (!floor_stopped)
        server_run_once(floor->server);
    while (floor->under_way.count > 0)
        server_answer(server_queue_pop(&floor->under_way));
    server_free(floor->server);
    PQfinish(floor->pg);
    HASH_CLEAR(hh, floor->by_token);
    free(floor->list);
    input_done(&floor->input);
    free(floor);
}
