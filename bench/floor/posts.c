// SPDX-License-Identifier: Apache-2.0
// What a durable post costs at the least with Tidings' libraries: one thread that parses the body
// with jansson, gathers, inserts in one statement a round, and answers by hand. No token, no check.
// With --redis the statement moves the channels' heads as well, and a second thread counts each
// post in Redis: a post's whole way, at its barest. With --data each post is a ready-made frame at
// the sockets of its channel's members as well, and a mark is one row's update and one frame.
#include "batch.h"
#include "counter.h"
#include "floor.h"
#include "members.h"
#include "server.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uthash.h>

#define BATCH_MAX 1000
#define FRAME_BYTES_MAX 2000
#define TS_ROOM 32

struct channel {
    char *id; // key
    int64_t seq;
    UT_hash_handle hh;
};

struct request {
    struct server_request base; // first
    struct channel *channel;    // NULL: a mark
    json_t *json;
    struct batch_row row;
};

// One connection to Postgres, and the requests that wait for it or are under way.
struct lane {
    struct batch_writer *writer; // NULL: there is no such lane
    struct server_watch watch;
    struct server_queue waiting;
    struct request *under_way[BATCH_MAX];
    size_t under_way_count;
    struct floor *floor;
};

struct floor {
    struct server *server;
    struct lane posts, marks;
    struct counter *counter; // NULL: nothing counts
    struct members *members; // NULL: nobody listens
    struct channel *channels;
    size_t frame_bytes;
    int64_t last_ts;
};

static int64_t next_ts(struct floor *floor)
{
    struct timespec now;
    int64_t us;

    clock_gettime(CLOCK_REALTIME, &now);
    us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    floor->last_ts = us > floor->last_ts ? us : floor->last_ts + 1;
    return floor->last_ts;
}

static struct channel *channel_get(struct floor *floor, const char *id)
{
    struct channel *channel;

    HASH_FIND_STR(floor->channels, id, channel);
    if (!channel) {
        channel = tool_alloc(1, sizeof(*channel));
        channel->id = strdup(id);
        HASH_ADD_KEYPTR(hh, floor->channels, channel->id, strlen(channel->id), channel);
        batch_writer_add_channel(floor->posts.writer, id);
    }
    return channel;
}

static void parse(struct request *request, const char *text_key)
{
    struct server_request *base = &request->base;

    request->json = json_loadb(base->body, base->body_len, 0, NULL);
    request->row.channel = json_string_value(json_object_get(request->json, "channel"));
    request->row.body = json_string_value(json_object_get(request->json, text_key));
    if (!request->row.channel || !request->row.body)
        tool_die("no %s: %.*s", text_key, (int)base->body_len, base->body);
}

static void take_post(struct floor *floor, struct request *request)
{
    parse(request, "text");
    request->row.user = "U0000000000";
    request->row.ts = next_ts(floor);
    request->channel = channel_get(floor, request->row.channel);
    request->row.seq = ++request->channel->seq;
    server_queue_push(&floor->posts.waiting, &request->base);
}

// The token stands for the user.
static void take_mark(struct floor *floor, struct request *request)
{
    long long s, us;

    parse(request, "ts");
    if (sscanf(request->row.body, "%lld.%lld", &s, &us) != 2)
        tool_die("no ts: %s", request->row.body);
    request->row.user = server_request_token(&request->base);
    request->row.ts = s * 1000000 + us;
    request->channel = NULL;
    server_queue_push(&floor->marks.waiting, &request->base);
}

static char *write_plain(char *to, const char *text)
{
    size_t len = strlen(text);

    memcpy(to, text, len);
    return to + len;
}

static void answer_connect(struct floor *floor, struct server_request *request)
{
    char *to = write_plain(request->reply, "{\"ok\":true,\"url\":\"");

    to += members_write_url(floor->members, server_request_token(request), to, 256);
    to = write_plain(to, "\"}");
    request->reply_len = (size_t)(to - request->reply);
}

static void on_request(void *owner, struct server_request *request, const char *url)
{
    struct floor *floor = owner;

    if (floor->members && strcmp(url, "/api/rtm.connect") == 0)
        answer_connect(floor, request);
    else if (floor->members && strcmp(url, "/api/channels.mark") == 0)
        take_mark(floor, (struct request *)request);
    else
        take_post(floor, (struct request *)request);
}

static void on_done(void *owner, struct server_request *base)
{
    struct request *request = (struct request *)base;

    (void)owner;
    json_decref(request->json);
    request->json = NULL;
}

static void lane_send(struct lane *lane)
{
    struct batch_row rows[BATCH_MAX];
    size_t count = 0;

    while (lane->waiting.count > 0 && count < BATCH_MAX) {
        struct request *request = (struct request *)server_queue_pop(&lane->waiting);
        struct channel *channel = request->channel;

        request->row.is_head = channel && request->row.seq == channel->seq;
        rows[count] = request->row;
        lane->under_way[count++] = request;
    }
    lane->under_way_count = count;
    batch_writer_send(lane->writer, rows, count);
}

// Quotes and backslashes only: the load program sends nothing else that would need an escape.
static char *write_escaped(char *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            *to++ = '\\';
        *to++ = *text;
    }
    return to;
}

static void write_ts(char ret_text[TS_ROOM], int64_t ts)
{
    snprintf(ret_text, TS_ROOM, "%lld.%06lld", (long long)(ts / 1000000),
             (long long)(ts % 1000000));
}

static void write_post_reply(struct request *request, const char *ts)
{
    char *to = request->base.reply;

    to = write_plain(to, "{\"ok\":true,\"channel\":\"");
    to = write_escaped(to, request->row.channel);
    to = write_plain(write_plain(to, "\",\"ts\":\""), ts);
    to = write_plain(to, "\",\"message\":{\"type\":\"message\",\"text\":\"");
    to = write_escaped(to, request->row.body);
    to = write_plain(write_plain(to, "\",\"ts\":\""), ts);
    to = write_plain(to, "\"}}");
    request->base.reply_len = (size_t)(to - request->base.reply);
}

static void write_mark_reply(struct request *request, const char *ts)
{
    char *to = write_plain(request->base.reply, "{\"ok\":true,\"last_read\":\"");

    to = write_plain(write_plain(to, ts), "\"}");
    request->base.reply_len = (size_t)(to - request->base.reply);
}

// As long as Tidings' own: what is missing is spaces behind.
static void frame_send(struct floor *floor, const struct request *request, const char *ts)
{
    char text[FRAME_BYTES_MAX + 1];
    int len = snprintf(text, sizeof(text),
                       "{\"type\":\"%s\",\"channel\":\"%s\",\"text\":\"%s\",\"ts\":\"%s\"}",
                       request->channel ? "message" : "channel_marked", request->row.channel,
                       request->channel ? request->row.body : "", ts);

    if (len < 0 || (size_t)len > floor->frame_bytes)
        tool_die("a frame of %d bytes", len);
    memset(text + len, ' ', floor->frame_bytes - (size_t)len);
    if (request->channel)
        members_send_channel(floor->members, request->row.channel, text, floor->frame_bytes);
    else
        members_send_user(floor->members, request->row.user, text, floor->frame_bytes);
}

static void answer(struct floor *floor, struct request *request)
{
    char ts[TS_ROOM];

    write_ts(ts, request->row.ts);
    if (floor->members)
        frame_send(floor, request, ts);
    if (floor->counter)
        counter_add(floor->counter, request->channel->id);
    if (request->channel)
        write_post_reply(request, ts);
    else
        write_mark_reply(request, ts);
    server_answer(&request->base);
}

static void lane_answer(struct lane *lane)
{
    for (size_t i = 0; i < lane->under_way_count; i++)
        answer(lane->floor, lane->under_way[i]);
    if (lane->floor->counter)
        counter_send(lane->floor->counter);
    lane->under_way_count = 0;
}

static void on_writer_ready(void *owner)
{
    struct lane *lane = owner;

    if (batch_writer_step(lane->writer))
        lane_answer(lane);
}

static void lane_start(struct lane *lane, struct floor *floor, const char *database_url,
                       enum batch_kind kind)
{
    bool writes;

    *lane = (struct lane){.floor = floor, .watch = {.on_ready = on_writer_ready, .owner = lane}};
    server_queue_init(&lane->waiting);
    lane->writer = batch_writer_new(database_url, kind);
    lane->watch.fd = batch_writer_socket(lane->writer, &writes);
    server_watch_add(floor->server, &lane->watch);
}

static void lane_run(struct lane *lane)
{
    bool writes;

    if (!lane->writer)
        return;
    if (!batch_writer_is_busy(lane->writer) && lane->waiting.count > 0)
        lane_send(lane);
    batch_writer_socket(lane->writer, &writes);
    server_watch_writes(lane->floor->server, &lane->watch, writes);
}

// What is not stored yet gets no reply.
static void lane_give_up(struct lane *lane)
{
    for (size_t i = 0; i < lane->under_way_count; i++)
        server_answer(&lane->under_way[i]->base);
    while (lane->writer && lane->waiting.count > 0)
        server_answer(server_queue_pop(&lane->waiting));
}

static void start(struct floor *floor, const struct tool_args *args)
{
    struct server_plan plan = {.request_bytes = sizeof(struct request),
                               .on_request = on_request,
                               .on_done = on_done,
                               .owner = floor};
    const char *database_url = tool_args_text(args, "database", "");
    const char *data_path = tool_args_text(args, "data", NULL);
    unsigned redis_port = tool_args_number(args, "redis", 0, 0, UINT16_MAX);

    floor->server = server_new(tool_args_number(args, "port", 9000, 1, UINT16_MAX), &plan);
    floor->frame_bytes = tool_args_number(args, "frame-bytes", 300, 200, FRAME_BYTES_MAX);
    lane_start(&floor->posts, floor, database_url,
               redis_port != 0 ? BATCH_POSTS_HEADS : BATCH_POSTS);
    if (redis_port != 0)
        floor->counter = counter_new(redis_port);
    if (!data_path)
        return;
    floor->members = members_new(data_path, floor->server);
    lane_start(&floor->marks, floor, database_url, BATCH_CURSORS);
}

static void free_memory(struct floor *floor)
{
    struct channel *channel, *next;

    HASH_ITER(hh, floor->channels, channel, next)
    {
        HASH_DEL(floor->channels, channel);
        free(channel->id);
        free(channel);
    }
    free(floor);
}

static void stop(struct floor *floor)
{
    lane_give_up(&floor->posts);
    lane_give_up(&floor->marks);
    server_free(floor->server);
    batch_writer_free(floor->posts.writer);
    if (floor->marks.writer)
        batch_writer_free(floor->marks.writer);
    if (floor->counter)
        counter_free(floor->counter);
    if (floor->members)
        members_free(floor->members);
    free_memory(floor);
}

void floor_posts(const struct tool_args *args)
{
    struct floor *floor = tool_alloc(1, sizeof(*floor));

    start(floor, args);
    floor_say_ready();
    while (!floor_stopped) {
        server_run_once(floor->server);
        lane_run(&floor->posts);
        lane_run(&floor->marks);
    }
    stop(floor);
}
