// SPDX-License-Identifier: Apache-2.0
// Frames/s at many sockets: of Tidings, by posts to a channel of them all, and of the floor, which
// only sends.
#include "commands.h"
#include "sockets.h"
#include "tracker.h"

#include <stdio.h>
#include <stdlib.h>

#define TEXT_MAX 400

struct frames {
    struct setting setting;
    struct sockets sockets;
    struct tracker tracker;
    size_t text_bytes;
    size_t
        window; // posts that may be on their way at once: more would only fill the server's queues
    uint64_t from_ns, until_ns;
    uint64_t measured;
    char post[1024];
};

static const char *post_request(void *owner, size_t n, uint64_t due_ns, size_t *ret_len)
{
    struct frames *run = owner;
    struct setting_turn turn = setting_turn(&run->setting, n);
    char text[TEXT_MAX + 1], json[TEXT_MAX + 100];

    if (run->tracker.count - run->tracker.complete >= run->window)
        return NULL;
    tracker_add(&run->tracker, due_ns, text, run->text_bytes);
    snprintf(json, sizeof(json), "{\"channel\":\"%s\",\"text\":\"%s\"}", turn.channel->id, text);
    *ret_len = setting_request(&run->setting, run->post, sizeof(run->post), "chat.postMessage",
                               turn.user->token, json);
    return run->post;
}

static void post_reply(void *owner, size_t n, const char *body, size_t len)
{
    struct frames *run = owner;

    http_reply_check(body, len);
    tracker_ack(&run->tracker, n);
}

static void on_frame(struct ws_socket *socket, const char *text, size_t len)
{
    struct frames *run = socket->owner;
    uint64_t now_ns = tool_now_ns();

    if (tracker_frame(&run->tracker, socket->member, text, len, now_ns))
        run->measured += now_ns >= run->from_ns && now_ns < run->until_ns;
}

static void print_frames(const struct frames *run, uint64_t reads)
{
    const struct tracker *tracker = &run->tracker;
    double seconds = (double)run->setting.plan.run_ns / 1e9;

    printf("{\"rate\":%.1f,\"frames\":%llu,\"frame_bytes\":%.1f,\"frames_per_read\":%.2f,"
           "\"lost\":%llu,\"doubled\":%llu,\"closed\":%zu}\n",
           (double)run->measured / seconds, (unsigned long long)tracker->frames,
           (double)tracker->bytes / (double)(tracker->frames > 0 ? tracker->frames : 1),
           (double)tracker->frames / (double)(reads > 0 ? reads : 1),
           (unsigned long long)tracker_lost(tracker), (unsigned long long)tracker->doubled,
           sockets_count_closed(&run->sockets));
}

static void frames_run(struct frames *run)
{
    struct load load;
    uint64_t reads = net_loop_reads(run->setting.loop);
    uint64_t drain_ns;

    load_start(&load, run->setting.loop, &run->setting.plan);
    run->from_ns = load.warm_until_ns;
    run->until_ns = load.end_ns;
    load_finish(&load, run->setting.loop);
    drain_ns = tool_now_ns() + TOOL_NS_PER_S;
    while (tracker_lost(&run->tracker) > 0 && tool_now_ns() < drain_ns)
        net_loop_run(run->setting.loop, tool_now_ns() + TOOL_NS_PER_S / 10);
    print_frames(run, net_loop_reads(run->setting.loop) - reads);
    load_done(&load);
}

void command_frames(const struct tool_args *args)
{
    struct frames run = {0};

    setting_init(&run.setting, args, "all", 4);
    run.window = tool_args_number(args, "window", 4, 1, 1000);
    run.text_bytes = tool_args_number(args, "text-bytes", 100, 20, TEXT_MAX);
    run.setting.plan.request = post_request;
    run.setting.plan.reply = post_reply;
    run.setting.plan.owner = &run;
    sockets_of_channels(&run.sockets, &run.setting.input);
    run.sockets.are_events = tool_args_number(args, "events", 0, 0, 1);
    tracker_init(&run.tracker, run.sockets.count);
    sockets_open(&run.sockets, &run.setting, on_frame, &run);
    frames_run(&run);
    sockets_close(&run.sockets);
    free(run.sockets.list);
    tracker_done(&run.tracker);
    setting_done(&run.setting);
}

struct listening {
    uint64_t frames;
    uint64_t bytes;
};

static void count_frame(struct ws_socket *socket, const char *text, size_t len)
{
    struct listening *listening = socket->owner;

    (void)text;
    listening->frames++;
    listening->bytes += len;
}

static void run_until(struct net_loop *loop, uint64_t until_ns)
{
    while (tool_now_ns() < until_ns)
        net_loop_run(loop, until_ns);
}

void command_listen(const struct tool_args *args)
{
    const char *url = tool_args_text(args, "url", "ws://127.0.0.1:9000");
    unsigned count = tool_args_number(args, "sockets", 1000, 1, 15000);
    unsigned seconds = tool_args_number(args, "seconds", 3, 1, 600);
    unsigned warm_ms = tool_args_number(args, "warm-ms", 300, 0, 60000);
    struct ws_socket *sockets = tool_alloc(count, sizeof(*sockets));
    struct net_loop *loop = net_loop_new();
    struct listening listening = {0};
    uint64_t start_ns;

    for (unsigned i = 0; i < count; i++) {
        sockets[i] = (struct ws_socket){.owner = &listening, .on_frame = count_frame};
        ws_socket_open_raw(&sockets[i], loop, url);
    }
    run_until(loop, tool_now_ns() + warm_ms * TOOL_NS_PER_MS);
    listening = (struct listening){0};
    start_ns = tool_now_ns();
    run_until(loop, start_ns + seconds * TOOL_NS_PER_S);
    printf("{\"rate\":%.1f,\"frame_bytes\":%.1f}\n",
           (double)listening.frames * 1e9 / (double)(tool_now_ns() - start_ns),
           (double)listening.bytes / (double)(listening.frames > 0 ? listening.frames : 1));
    for (unsigned i = 0; i < count; i++)
        net_conn_close(&sockets[i].conn);
    free(sockets);
    net_loop_free(loop);
}
