// SPDX-License-Identifier: Apache-2.0
// Posts at a fixed rate to event streams, several of each user, which are all cut at once and
// opened anew, each from its last event on: how long until all are back with everything, and what
// the posts notice of it.
#include "commands.h"
#include "tracker.h"
#include "ws.h"

#include "setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 400
#define BACK_MAX_NS (60 * TOOL_NS_PER_S)
#define DRAIN_NS (3 * TOOL_NS_PER_S)
#define POLL_NS (50 * TOOL_NS_PER_MS)
#define AGAIN_NS TOOL_NS_PER_S
#define CUT_STEP 64 // a reset takes some 10 us, for which this program does nothing else

enum state { STATE_WAITS, STATE_OPENS, STATE_LISTENS };

struct stream {
    struct ws_socket socket; // first
    enum state state;
    uint64_t open_ns; // when it is opened, at the earliest
    char last_id[WS_ID_ROOM];
};

struct reconnect {
    struct setting setting;
    struct load posts;
    struct tracker tracker;
    struct stream *streams;
    size_t count, listening, opening, window;
    size_t next; // all before it were opened, or wait
    size_t text_bytes;
    size_t refused_posts, refused_streams, dropped_streams, gaps;
    uint64_t cut_ns, back_ns, whole_ns, poll_ns;
    struct samples before, during; // from due to acked
    char post[1024];
};

static const char *post_request(void *owner, size_t n, uint64_t due_ns, size_t *ret_len)
{
    struct reconnect *run = owner;
    struct setting_turn turn = setting_turn(&run->setting, n);
    char text[TEXT_MAX + 1], json[TEXT_MAX + 100];

    tracker_add(&run->tracker, due_ns, text, run->text_bytes);
    snprintf(json, sizeof(json), "{\"channel\":\"%s\",\"text\":\"%s\"}", turn.channel->id, text);
    *ret_len = setting_request(&run->setting, run->post, sizeof(run->post), "chat.postMessage",
                               turn.user->token, json);
    return run->post;
}

static void post_reply(void *owner, size_t n, const char *body, size_t len)
{
    struct reconnect *run = owner;
    uint64_t due_ns = run->tracker.posts[n].due_ns, took_ns = tool_now_ns() - due_ns;

    if (!http_reply_is_ok(body, len)) {
        run->refused_posts++;
        return;
    }
    tracker_ack(&run->tracker, n);
    if (run->cut_ns == 0 && due_ns >= run->posts.warm_until_ns)
        samples_add(&run->before, took_ns);
    else if (run->cut_ns > 0)
        samples_add(&run->during, took_ns);
}

static bool is_of_type(const char *text, size_t len, const char *begin)
{
    return len > strlen(begin) && memcmp(text, begin, strlen(begin)) == 0;
}

static void on_frame(struct ws_socket *socket, const char *text, size_t len)
{
    struct reconnect *run = socket->owner;
    struct stream *stream = (struct stream *)socket;

    run->gaps += is_of_type(text, len, "{\"type\":\"gap\"");
    if (stream->state == STATE_OPENS && is_of_type(text, len, "{\"type\":\"hello\"")) {
        stream->state = STATE_LISTENS;
        run->opening--;
        run->listening++;
    }
    tracker_frame(&run->tracker, socket->member, text, len, tool_now_ns());
}

static void stream_open(struct reconnect *run, struct stream *stream)
{
    const struct input *input = &run->setting.input;

    stream->state = STATE_OPENS;
    run->opening++;
    ws_socket_resume_events(&stream->socket, run->setting.loop, input->url,
                            input->users[stream->socket.user].token);
}

// One that the server ended is opened again after a while, as its `retry` asks.
static void stream_poll(struct reconnect *run, struct stream *stream, uint64_t now_ns)
{
    if (stream->state != STATE_WAITS && stream->socket.conn.fd < 0) {
        run->refused_streams += stream->socket.is_refused;
        run->dropped_streams += !stream->socket.is_refused;
        run->opening -= stream->state == STATE_OPENS;
        run->listening -= stream->state == STATE_LISTENS;
        net_conn_close(&stream->socket.conn);
        stream->state = STATE_WAITS;
        stream->open_ns = now_ns + AGAIN_NS;
    }
}

static void open_more(struct reconnect *run, uint64_t now_ns)
{
    for (; run->next < run->count && run->opening < run->window; run->next++) {
        struct stream *stream = &run->streams[run->next];

        if (stream->state == STATE_WAITS && stream->open_ns <= now_ns)
            stream_open(run, stream);
    }
}

// Whether every frame of each post that was due before `until_ns` is there.
static bool is_whole(const struct reconnect *run, uint64_t until_ns)
{
    const struct tracker *tracker = &run->tracker;

    for (size_t n = 0; n < tracker->count && tracker->posts[n].due_ns < until_ns; n++)
        if (tracker->posts[n].acked && tracker->posts[n].received < tracker->members)
            return false;
    return true;
}

static void streams_poll(struct reconnect *run)
{
    uint64_t now_ns = tool_now_ns();

    if (now_ns < run->poll_ns)
        return;
    run->poll_ns = now_ns + POLL_NS;
    for (size_t i = 0; i < run->count; i++)
        stream_poll(run, &run->streams[i], now_ns);
    if (run->next == run->count)
        run->next = 0;
    if (run->cut_ns == 0)
        return;
    if (run->back_ns == 0 && run->listening == run->count)
        run->back_ns = now_ns;
    if (run->back_ns > 0 && run->whole_ns == 0 && is_whole(run, run->back_ns))
        run->whole_ns = now_ns;
}

static void step(struct reconnect *run, uint64_t until_ns)
{
    uint64_t post_ns = run->posts.start_ns > 0 ? load_step(&run->posts) : UINT64_MAX;

    streams_poll(run);
    open_more(run, tool_now_ns());
    until_ns = run->poll_ns < until_ns ? run->poll_ns : until_ns;
    net_loop_run(run->setting.loop, post_ns < until_ns ? post_ns : until_ns);
}

static void open_all(struct reconnect *run)
{
    uint64_t end_ns = tool_now_ns() + BACK_MAX_NS;

    while (run->listening < run->count) {
        if (tool_now_ns() > end_ns)
            tool_die("%zu of %zu streams said hello", run->listening, run->count);
        step(run, UINT64_MAX);
    }
}

static void cut_all(struct reconnect *run)
{
    run->cut_ns = tool_now_ns();
    run->next = run->count; // none comes back before all are cut
    run->poll_ns = UINT64_MAX;
    for (size_t i = 0; i < run->count; i++) {
        net_conn_cut(&run->streams[i].socket.conn);
        run->streams[i].state = STATE_WAITS;
        run->streams[i].open_ns = 0;
        if (i % CUT_STEP == CUT_STEP - 1)
            step(run, tool_now_ns());
    }
    run->listening = run->opening = run->next = 0;
    run->poll_ns = 0;
}

static void post_and_cut(struct reconnect *run)
{
    struct load_plan plan = run->setting.plan;
    uint64_t before_ns = plan.warm_ns + plan.run_ns, end_ns;

    plan.run_ns += BACK_MAX_NS + TOOL_NS_PER_S;
    load_start(&run->posts, run->setting.loop, &plan);
    run->posts.pool.may_reopen = true; // most are idle for long
    while (tool_now_ns() < run->posts.start_ns + before_ns)
        step(run, UINT64_MAX);
    cut_all(run);
    while (run->whole_ns == 0 && tool_now_ns() < run->cut_ns + BACK_MAX_NS)
        step(run, UINT64_MAX);
    run->posts.end_ns = tool_now_ns();
    end_ns = run->posts.end_ns + DRAIN_NS;
    while (tool_now_ns() < end_ns &&
           (!load_is_over(&run->posts) || tracker_lost(&run->tracker) > 0))
        step(run, UINT64_MAX);
}

// Seconds since the cut; what has not happened took longer than was waited.
static double since_cut_s(const struct reconnect *run, uint64_t at_ns)
{
    return (double)(at_ns > 0 ? at_ns - run->cut_ns : BACK_MAX_NS) / (double)TOOL_NS_PER_S;
}

static void print_reconnect(struct reconnect *run)
{
    printf("{\"streams\":%zu,\"back_s\":%.3f,\"whole_s\":%.3f,", run->count,
           since_cut_s(run, run->back_ns), since_cut_s(run, run->whole_ns));
    samples_print(&run->before, "before_");
    fputs(",", stdout);
    samples_print(&run->during, "during_");
    printf(",\"refused\":%zu,\"unanswered\":%zu,\"refused_streams\":%zu,\"dropped_streams\":%zu,"
           "\"gaps\":%zu,\"lost\":%llu,\"twice\":%llu}\n",
           run->refused_posts, run->posts.sent - run->posts.replies, run->refused_streams,
           run->dropped_streams, run->gaps, (unsigned long long)tracker_lost(&run->tracker),
           (unsigned long long)run->tracker.doubled);
}

// `devices` streams of each member of each channel.
static void streams_init(struct reconnect *run, size_t devices)
{
    const struct input *input = &run->setting.input;
    size_t members = input->channels[0].member_count;
    struct stream *next;

    run->count = input->channel_count * members * devices;
    next = run->streams = tool_alloc(run->count, sizeof(*run->streams));
    for (size_t i = 0; i < run->count; i++, next++) {
        size_t member = i / input->channel_count % members;
        size_t device = i / input->channel_count / members;

        next->socket = (struct ws_socket){
            .conn.fd = -1,
            .user = input->channels[i % input->channel_count].members[member],
            .member = device * members + member,
            .owner = run,
            .on_frame = on_frame,
            .last_id = next->last_id,
        };
    }
    tracker_init(&run->tracker, members * devices);
}

void command_reconnect(const struct tool_args *args)
{
    struct reconnect run = {0};

    setting_init(&run.setting, args, "small", 64);
    run.setting.plan.rate = tool_args_number(args, "rate", 50, 1, 10000);
    run.setting.plan.request = post_request;
    run.setting.plan.reply = post_reply;
    run.setting.plan.owner = &run;
    run.text_bytes = tool_args_number(args, "text-bytes", 100, 20, TEXT_MAX);
    run.window = tool_args_number(args, "window", 256, 1, 15000);
    streams_init(&run, tool_args_number(args, "devices", 10, 1, 15));
    open_all(&run);
    post_and_cut(&run);
    print_reconnect(&run);
    for (size_t i = 0; i < run.count; i++)
        net_conn_cut(&run.streams[i].socket.conn);
    load_done(&run.posts);
    free(run.streams);
    samples_done(&run.before);
    samples_done(&run.during);
    tracker_done(&run.tracker);
    setting_done(&run.setting);
}
