// SPDX-License-Identifier: Apache-2.0
// What a durable post costs at the least: all that wait go in one prepared statement a round. With
// --redis it moves the channels' heads as well, and each post is counted in Redis. With --data each
// post is a frame at the sockets of its channel's members, too, and a mark is one row and one
// frame. No token, no check, no outbox.
#include "floor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define BATCH_MAX 1000
#define PARAM_COUNT 3
#define FRAME_BYTES 300 // as long as Tidings' own: what is missing is spaces behind
#define FRAME_HEAD 4
#define TS_ROOM 32

#define SESSION_SQL "SET plan_cache_mode = force_generic_plan; SET jit = off;"
#define ROWS "unnest($1::text[], $2::bigint[], $3::text[])"

static const char posts_tables_sql[] = SESSION_SQL
    "DROP TABLE IF EXISTS floor_messages;"
    "CREATE TABLE floor_messages (channel_id text COLLATE \"C\" NOT NULL, ts bigint NOT NULL,"
    " user_id text COLLATE \"C\" NOT NULL, body text NOT NULL, PRIMARY KEY (channel_id, ts));"
    "DROP TABLE IF EXISTS floor_channels;"
    "CREATE TABLE floor_channels (id text COLLATE \"C\" PRIMARY KEY, ts bigint NOT NULL)"
    " WITH (fillfactor = 50)";
static const char posts_sql[] =
    "INSERT INTO floor_messages SELECT channel, ts, 'U0000000000', body FROM " ROWS
    " AS r (channel, ts, body)";
static const char heads_sql[] =
    "WITH r AS (SELECT * FROM " ROWS " AS r (channel, ts, body)), heads AS ("
    "INSERT INTO floor_channels AS c SELECT channel, max(ts) FROM r GROUP BY channel"
    " ON CONFLICT (id) DO UPDATE SET ts = excluded.ts) "
    "INSERT INTO floor_messages SELECT channel, ts, 'U0000000000', body FROM r";
static const char marks_tables_sql[] = SESSION_SQL
    "DROP TABLE IF EXISTS floor_cursors;"
    "CREATE TABLE floor_cursors (channel_id text COLLATE \"C\" NOT NULL, ts bigint NOT NULL,"
    " user_id text COLLATE \"C\" NOT NULL, PRIMARY KEY (channel_id, user_id))"
    " WITH (fillfactor = 50)";
static const char marks_sql[] = "INSERT INTO floor_cursors SELECT * FROM " ROWS
                                " ON CONFLICT (channel_id, user_id) DO UPDATE SET ts = excluded.ts";

// A parameter in Postgres' text form of an array.
struct array {
    char *text;
    size_t len, room;
};

// One connection to Postgres, and the requests that wait for it or are under way.
struct lane {
    PGconn *pg;
    struct conn *waiting[BATCH_MAX], *under_way[BATCH_MAX];
    size_t waiting_count, under_way_count;
    struct array params[PARAM_COUNT];
};

static struct lane posts, marks;
static struct input *input;     // NULL: nobody listens
static struct conn **listeners; // of each user of it
static unsigned server_port;
static int redis = -1; // -1: nothing is counted
static int64_t last_ts;

static void array_add(struct array *array, const char *value)
{
    size_t most = array->len + 2 * strlen(value) + 5;

    if (most > array->room)
        array->text = tool_grow(array->text, array->room = 2 * most);
    array->text[array->len] = array->len == 0 ? '{' : ',';
    array->text[++array->len] = '"';
    for (array->len++; *value != '\0'; value++) {
        if (*value == '"' || *value == '\\')
            array->text[array->len++] = '\\';
        array->text[array->len++] = *value;
    }
    memcpy(array->text + array->len, "\"}", 3); // the next one begins on the brace
    array->len++;
}

static void row_add(struct lane *lane, const struct conn *conn)
{
    const char *text = lane == &posts ? conn_text(conn, "text") : conn->token;
    const char *channel = conn_text(conn, "channel");
    char ts[TS_ROOM];

    if (!channel || !text)
        tool_die("no post: %s", conn->body);
    snprintf(ts, sizeof(ts), "%lld", (long long)conn->ts);
    array_add(&lane->params[0], channel);
    array_add(&lane->params[1], ts);
    array_add(&lane->params[2], text);
}

static void lane_send(struct lane *lane)
{
    const char *values[PARAM_COUNT];

    for (size_t i = 0; i < lane->waiting_count; i++)
        row_add(lane, lane->under_way[i] = lane->waiting[i]);
    lane->under_way_count = lane->waiting_count;
    lane->waiting_count = 0;
    for (size_t i = 0; i < PARAM_COUNT; i++) {
        values[i] = lane->params[i].text;
        lane->params[i].len = 0;
    }
    floor_expect(lane->pg,
                 PQsendQueryPrepared(lane->pg, "batch", PARAM_COUNT, values, NULL, NULL, 0));
}

static void on_turn(void)
{
    for (struct lane *lane = &posts; lane; lane = lane == &posts ? &marks : NULL)
        if (lane->waiting_count > 0 && lane->under_way_count == 0)
            lane_send(lane);
}

static void frame_send(const struct conn *conn, const char *type, const char *ts)
{
    char frame[FRAME_HEAD + FRAME_BYTES + 1] = "\x81\x7e";
    int len = snprintf(frame + FRAME_HEAD, FRAME_BYTES + 1,
                       "{\"type\":\"%s\",\"ts\":\"%s\",\"body\":%s}", type, ts, conn->body);
    const struct input_channel *channel;
    const struct input_user *user;

    if (len < 0 || len > FRAME_BYTES)
        tool_die("a frame of %d bytes", len);
    memset(frame + FRAME_HEAD + len, ' ', (size_t)(FRAME_BYTES - len));
    frame[2] = (char)(FRAME_BYTES >> 8);
    frame[3] = (char)(FRAME_BYTES & 0xff);
    if (type[0] == 'c') { // the frame of a mark is the user's
        user = floor_find(conn->token);
        conn_write(listeners[user - input->users], frame, FRAME_HEAD + FRAME_BYTES);
        return;
    }
    channel = floor_find(conn_text(conn, "channel"));
    for (size_t i = 0; i < channel->member_count; i++)
        conn_write(listeners[channel->members[i]], frame, FRAME_HEAD + FRAME_BYTES);
}

static void answer(struct lane *lane, struct conn *conn)
{
    char ts[TS_ROOM], reply[FLOOR_REQUEST_MAX + 100];
    bool is_post = lane == &posts;
    int len;

    snprintf(ts, sizeof(ts), "%lld.%06lld", (long long)(conn->ts / 1000000),
             (long long)(conn->ts % 1000000));
    if (input)
        frame_send(conn, is_post ? "message" : "channel_marked", ts);
    len = snprintf(reply, sizeof(reply), "{\"ok\":true,\"%s\":\"%s\",\"message\":%s}",
                   is_post ? "ts" : "last_read", ts, is_post ? conn->body : "0");
    conn_reply(conn, reply, (size_t)len);
}

static void count_in_redis(const struct lane *lane)
{
    static char commands[BATCH_MAX * 64];
    size_t len = 0;

    for (size_t i = 0; i < lane->under_way_count; i++)
        len += (size_t)snprintf(commands + len, sizeof(commands) - len, "INCR %.50s\r\n",
                                conn_text(lane->under_way[i], "channel"));
    if (send(redis, commands, len, 0) != (ssize_t)len)
        tool_die("redis: %s", strerror(errno));
}

static void on_redis(void)
{
    char replies[65536];

    if (recv(redis, replies, sizeof(replies), 0) <= 0)
        tool_die("redis: %s", strerror(errno));
}

static void lane_read(struct lane *lane)
{
    PGresult *result;

    floor_expect(lane->pg, PQconsumeInput(lane->pg));
    if (lane->under_way_count == 0 || PQisBusy(lane->pg))
        return;
    while ((result = PQgetResult(lane->pg))) {
        floor_expect(lane->pg, PQresultStatus(result) == PGRES_COMMAND_OK);
        PQclear(result);
    }
    if (redis >= 0)
        count_in_redis(lane);
    for (size_t i = 0; i < lane->under_way_count; i++)
        answer(lane, lane->under_way[i]);
    lane->under_way_count = 0;
}

static void on_posts(void)
{
    lane_read(&posts);
}

static void on_marks(void)
{
    lane_read(&marks);
}

static int64_t next_ts(void)
{
    struct timespec now;
    int64_t us;

    clock_gettime(CLOCK_REALTIME, &now);
    us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    return last_ts = us > last_ts ? us : last_ts + 1;
}

static int64_t marked_ts(const struct conn *conn)
{
    const char *ts = conn_text(conn, "ts");
    long long s, us;

    if (!ts || sscanf(ts, "%lld.%lld", &s, &us) != 2)
        tool_die("no mark: %s", conn->body);
    return s * 1000000 + us;
}

static void answer_connect(struct conn *conn)
{
    char reply[256];
    int len = snprintf(reply, sizeof(reply), "{\"ok\":true,\"url\":\"ws://127.0.0.1:%u/rtm/%s\"}",
                       server_port, conn->token);

    conn_reply(conn, reply, (size_t)len);
}

static void listener_greet(struct conn *conn)
{
    static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                                 "Connection: Upgrade\r\n\r\n\x81\x10{\"type\":\"hello\"}";
    const struct input_user *user = floor_find(conn->path + strlen("/rtm/"));

    listeners[user - input->users] = conn;
    conn_write(conn, answer, sizeof(answer) - 1);
}

static void on_request(struct conn *conn)
{
    struct lane *lane = &posts;

    if (input && strncmp(conn->path, "/rtm/", 5) == 0) {
        listener_greet(conn);
        return;
    }
    if (input && strcmp(conn->path, "/api/rtm.connect") == 0) {
        answer_connect(conn);
        return;
    }
    if (input && strcmp(conn->path, "/api/channels.mark") == 0)
        lane = &marks;
    conn->ts = lane == &marks ? marked_ts(conn) : next_ts();
    if (lane->waiting_count == BATCH_MAX)
        tool_die("more than %d requests at once", BATCH_MAX);
    lane->waiting[lane->waiting_count++] = conn;
}

static void lane_start(struct lane *lane, const struct tool_args *args, const char *tables,
                       const char *sql, void (*on_ready)(void))
{
    lane->pg = floor_postgres(args, tables);
    PQclear(PQprepare(lane->pg, "batch", sql, 0, NULL));
    server_watch(PQsocket(lane->pg), on_ready);
}

static void redis_start(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    redis = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(redis, (struct sockaddr *)&address, sizeof(address)) < 0)
        tool_die("redis: %s", strerror(errno));
    server_watch(redis, on_redis);
}

void floor_posts(const struct tool_args *args)
{
    static struct conn nobody = {.fd = -1};
    unsigned redis_port = tool_args_number(args, "redis", 0, 0, UINT16_MAX);

    server_port = tool_args_number(args, "port", 9000, 1, UINT16_MAX);
    lane_start(&posts, args, posts_tables_sql, redis_port ? heads_sql : posts_sql, on_posts);
    if (redis_port)
        redis_start(redis_port);
    if (tool_args_text(args, "data", NULL)) {
        input = floor_input(args, "small");
        listeners = tool_alloc(input->user_count, sizeof(struct conn *));
        for (size_t i = 0; i < input->user_count; i++)
            listeners[i] = &nobody;
        lane_start(&marks, args, marks_tables_sql, marks_sql, on_marks);
    }
    server_run(server_port, on_request, on_turn);
}
