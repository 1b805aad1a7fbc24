// SPDX-License-Identifier: Apache-2.0
// Posts at a fixed rate, each followed to the socket of every member of its channel; and marks
// beside it, each followed to the socket of who marked: the frame that tells the user's other
// device.
#include "commands.h"
#include "sockets.h"
#include "tracker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TS_ROOM 24
#define TEXT_MAX 400
#define DRAIN_NS (3 * TOOL_NS_PER_S)

struct mark_state {
    uint64_t due_ns; // 0: no mark under way
    char ts[TS_ROOM];
};

struct delivery {
    struct setting setting;
    struct sockets sockets;
    struct tracker tracker;
    size_t text_bytes;
    size_t refused;
    char (*heads)[TS_ROOM];   // ts of the last post of each channel
    struct mark_state *marks; // of each socket
    size_t marks_sent;
    struct samples mark_latency;
    char post[1024], mark[1024];
};

static const char *post_request(void *owner, size_t n, uint64_t due_ns, size_t *ret_len)
{
    struct delivery *run = owner;
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
    struct delivery *run = owner;
    char *head = run->heads[setting_turn(&run->setting, n).channel_index], ts[TS_ROOM];

    if (!http_reply_is_ok(body, len)) {
        run->refused++;
        return;
    }
    tracker_ack(&run->tracker, n);
    http_reply_text(body, len, "ts", ts, sizeof(ts));
    if (strcmp(ts, head) > 0)
        memcpy(head, ts, TS_ROOM);
}

// The n-th mark is of the n-th socket's user, up to the last post of the channel; left out where
// that is not new.
static const char *mark_request(void *owner, size_t n, uint64_t due_ns, size_t *ret_len)
{
    struct delivery *run = owner;
    struct setting_turn turn = setting_turn(&run->setting, n);
    size_t per_channel = run->setting.input.channels[0].member_count;
    struct mark_state *mark = &run->marks[turn.channel_index * per_channel + turn.member];
    const char *head = run->heads[turn.channel_index];
    char json[128];

    if (mark->due_ns != 0 || strcmp(head, mark->ts) <= 0)
        return NULL;
    mark->due_ns = due_ns;
    memcpy(mark->ts, head, TS_ROOM);
    run->marks_sent++;
    snprintf(json, sizeof(json), "{\"channel\":\"%s\",\"ts\":\"%s\"}", turn.channel->id, head);
    *ret_len = setting_request(&run->setting, run->mark, sizeof(run->mark), "channels.mark",
                               turn.user->token, json);
    return run->mark;
}

static void on_frame(struct ws_socket *socket, const char *text, size_t len)
{
    struct delivery *run = socket->owner;
    struct mark_state *mark = &run->marks[socket - run->sockets.list];
    uint64_t now_ns = tool_now_ns();

    if (tracker_frame(&run->tracker, socket->member, text, len, now_ns) || mark->due_ns == 0)
        return;
    if (!memmem(text, len, "\"channel_marked\"", 16) ||
        !memmem(text, len, mark->ts, strlen(mark->ts)))
        return;
    samples_add(&run->mark_latency, now_ns - mark->due_ns);
    mark->due_ns = 0;
}

static size_t count_unseen_marks(const struct delivery *run)
{
    size_t unseen = 0;

    for (size_t i = 0; i < run->sockets.count; i++)
        unseen += run->marks[i].due_ns != 0;
    return unseen;
}

static void drain(struct delivery *run)
{
    uint64_t end_ns = tool_now_ns() + DRAIN_NS;

    while (tool_now_ns() < end_ns &&
           (tracker_lost(&run->tracker) > 0 || count_unseen_marks(run) > 0))
        net_loop_run(run->setting.loop, tool_now_ns() + TOOL_NS_PER_S / 10);
}

static void run_loads(struct delivery *run, struct load *posts, struct load *marks, bool with_marks)
{
    while (!load_is_over(posts) || (with_marks && !load_is_over(marks))) {
        uint64_t now = tool_now_ns(), next_ns = now + TOOL_NS_PER_S / 10;
        uint64_t post_ns = load_step(posts);
        uint64_t mark_ns = with_marks ? load_step(marks) : UINT64_MAX;

        if (now > posts->end_ns + 2 * DRAIN_NS)
            tool_die("%zu of %zu posts are unanswered", posts->sent - posts->replies, posts->sent);
        next_ns = post_ns < next_ns ? post_ns : next_ns;
        net_loop_run(run->setting.loop, mark_ns < next_ns ? mark_ns : next_ns);
    }
}

static void print_delivery(struct delivery *run, struct load *posts)
{
    printf("{\"rate\":%.1f,\"posts\":%zu,\"refused\":%zu,", load_rate(posts), posts->sent,
           run->refused);
    samples_print(&run->tracker.latency, "");
    fputs(",", stdout);
    samples_print(&posts->latency, "ack_");
    fputs(",", stdout);
    samples_print(&run->mark_latency, "mark_");
    printf(",\"marks_sent\":%zu,\"marks_unseen\":%zu,\"frames\":%llu,\"lost\":%llu,"
           "\"doubled\":%llu,\"closed\":%zu}\n",
           run->marks_sent, count_unseen_marks(run), (unsigned long long)run->tracker.frames,
           (unsigned long long)tracker_lost(&run->tracker),
           (unsigned long long)run->tracker.doubled, sockets_count_closed(&run->sockets));
}

static void delivery_run(struct delivery *run, unsigned marks_rate)
{
    struct load_plan post_plan = run->setting.plan, mark_plan = run->setting.plan;
    struct load posts, marks;

    post_plan.request = post_request;
    post_plan.reply = post_reply;
    mark_plan.rate = marks_rate;
    mark_plan.request = mark_request;
    post_plan.owner = mark_plan.owner = run;
    load_start(&posts, run->setting.loop, &post_plan);
    run->tracker.warm_until_ns = posts.warm_until_ns;
    if (marks_rate > 0)
        load_start(&marks, run->setting.loop, &mark_plan);
    run_loads(run, &posts, &marks, marks_rate > 0);
    drain(run);
    print_delivery(run, &posts);
    load_done(&posts);
    if (marks_rate > 0)
        load_done(&marks);
}

void command_delivery(const struct tool_args *args)
{
    struct delivery run = {0};
    struct input *input = &run.setting.input;

    setting_init(&run.setting, args, "small", 128);
    run.setting.plan.rate = tool_args_number(args, "rate", 100, 1, 100000);
    run.text_bytes = tool_args_number(args, "text-bytes", 100, 20, TEXT_MAX);
    sockets_of_channels(&run.sockets, input);
    tracker_init(&run.tracker, input->channels[0].member_count);
    run.heads = tool_alloc(input->channel_count, TS_ROOM);
    run.marks = tool_alloc(run.sockets.count, sizeof(*run.marks));
    sockets_open(&run.sockets, &run.setting, on_frame, &run);
    delivery_run(&run, tool_args_number(args, "marks", 0, 0, 100000));
    sockets_close(&run.sockets);
    free(run.sockets.list);
    free(run.heads);
    free(run.marks);
    samples_done(&run.mark_latency);
    tracker_done(&run.tracker);
    setting_done(&run.setting);
}
