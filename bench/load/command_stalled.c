// SPDX-License-Identifier: Apache-2.0
// Posts at a fixed rate to one socket for each member. At the end of the warm-up the last members
// of each channel stop reading; what is measured is the frames of the others from then on.
#include "commands.h"
#include "sockets.h"
#include "tracker.h"

#include <stdio.h>
#include <stdlib.h>

#define TEXT_MAX 4000
#define DRAIN_NS (3 * TOOL_NS_PER_S)

struct stalled {
    struct setting setting;
    struct sockets sockets;
    struct tracker tracker; // of those that go on reading
    size_t text_bytes;
    size_t refused;
    char text[TEXT_MAX + 1], json[TEXT_MAX + 100], post[TEXT_MAX + 1000];
};

static const char *post_request(void *owner, size_t n, uint64_t due_ns, size_t *ret_len)
{
    struct stalled *run = owner;
    struct setting_turn turn = setting_turn(&run->setting, n);

    tracker_add(&run->tracker, due_ns, run->text, run->text_bytes);
    snprintf(run->json, sizeof(run->json), "{\"channel\":\"%s\",\"text\":\"%s\"}", turn.channel->id,
             run->text);
    *ret_len = setting_request(&run->setting, run->post, sizeof(run->post), "chat.postMessage",
                               turn.user->token, run->json);
    return run->post;
}

static void post_reply(void *owner, size_t n, const char *body, size_t len)
{
    struct stalled *run = owner;

    if (http_reply_is_ok(body, len))
        tracker_ack(&run->tracker, n);
    else
        run->refused++;
}

static void on_frame(struct ws_socket *socket, const char *text, size_t len)
{
    struct stalled *run = socket->owner;

    if (socket->member < run->tracker.members)
        tracker_frame(&run->tracker, socket->member, text, len, tool_now_ns());
}

static void stall(struct stalled *run)
{
    for (size_t i = 0; i < run->sockets.count; i++)
        if (run->sockets.list[i].member >= run->tracker.members)
            net_conn_stall(&run->sockets.list[i].conn);
}

static void post_all(struct stalled *run, struct load *load)
{
    bool is_stalled = false;

    while (!load_is_over(load)) {
        uint64_t post_ns = load_step(load), now_ns = tool_now_ns();
        uint64_t next_ns = now_ns + TOOL_NS_PER_S / 10;

        if (!is_stalled && now_ns >= load->warm_until_ns) {
            stall(run);
            is_stalled = true;
        }
        if (now_ns > load->end_ns + 2 * DRAIN_NS)
            tool_die("%zu of %zu posts are unanswered", load->sent - load->replies, load->sent);
        net_loop_run(run->setting.loop, post_ns < next_ns ? post_ns : next_ns);
    }
}

static void drain(struct stalled *run)
{
    uint64_t end_ns = tool_now_ns() + DRAIN_NS;

    while (tool_now_ns() < end_ns && tracker_lost(&run->tracker) > 0)
        net_loop_run(run->setting.loop, tool_now_ns() + TOOL_NS_PER_S / 10);
}

static void stalled_run(struct stalled *run)
{
    struct load load;

    run->setting.plan.request = post_request;
    run->setting.plan.reply = post_reply;
    run->setting.plan.owner = run;
    load_start(&load, run->setting.loop, &run->setting.plan);
    run->tracker.warm_until_ns = load.warm_until_ns;
    post_all(run, &load);
    drain(run);
    printf("{\"rate\":%.1f,\"refused\":%zu,", load_rate(&load), run->refused);
    samples_print(&run->tracker.latency, "");
    fputs(",", stdout);
    samples_print(&load.latency, "ack_");
    printf(",\"lost\":%llu,\"doubled\":%llu,\"closed\":%zu}\n",
           (unsigned long long)tracker_lost(&run->tracker),
           (unsigned long long)run->tracker.doubled, sockets_count_closed(&run->sockets));
    load_done(&load);
}

void command_stalled(const struct tool_args *args)
{
    struct stalled run = {0};
    struct input *input = &run.setting.input;
    size_t members;

    setting_init(&run.setting, args, "small", 128);
    members = input->channels[0].member_count;
    run.setting.plan.rate = tool_args_number(args, "rate", 500, 1, 100000);
    run.text_bytes = tool_args_number(args, "text-bytes", 4000, 20, TEXT_MAX);
    sockets_of_channels(&run.sockets, input);
    tracker_init(&run.tracker,
                 members - tool_args_number(args, "stalled", 2, 0, (unsigned)members - 1));
    net_loop_narrow(run.setting.loop);
    sockets_open(&run.sockets, &run.setting, on_frame, &run);
    stalled_run(&run);
    sockets_close(&run.sockets);
    free(run.sockets.list);
    tracker_done(&run.tracker);
    setting_done(&run.setting);
}
