// SPDX-License-Identifier: Apache-2.0
// More posts than can be kept: open loop on many connections to all channels but the last. Beside
// them slow users, the members of the last channel, who post at most twice a second on a connection
// of their own and post again what was refused. All wait out each Retry-After.
#include "commands.h"
#include "setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 400
#define REQUEST_ROOM 1024
#define SLOW_EVERY_NS (TOOL_NS_PER_S / 2)
#define PATIENCE_NS                                                                                \
    (100 * TOOL_NS_PER_MS) // a post that found no connection for so long is left out
#define DRAIN_NS (10 * TOOL_NS_PER_S)

struct slow_user {
    struct http_client *client;
    uint64_t due_ns;
    uint64_t send_ns; // when it is sent, or sent again: after due_ns where it was refused
};

struct overload {
    struct setting setting;
    struct load load;
    struct http_pool slow_pool;
    struct slow_user *slow;
    size_t slow_refused;
    struct samples slow_latency;
    uint64_t *sent_ns; // of each post
    size_t sent_room;
    size_t left_out;
    struct samples accepted, refusal; // from sent to answered
    char text[TEXT_MAX + 1];
    char request[REQUEST_ROOM];
};

static bool is_measured(const struct overload *run, uint64_t at_ns)
{
    return at_ns >= run->load.warm_until_ns && at_ns < run->load.end_ns;
}

static const char *post_write(struct overload *run, const char *channel, const char *token,
                              size_t *ret_len)
{
    char json[TEXT_MAX + 100];

    snprintf(json, sizeof(json), "{\"channel\":\"%s\",\"text\":\"%s\"}", channel, run->text);
    *ret_len = setting_request(&run->setting, run->request, sizeof(run->request),
                               "chat.postMessage", token, json);
    return run->request;
}

static const char *post_request(void *owner, size_t n, uint64_t due_ns, size_t *ret_len)
{
    struct overload *run = owner;
    struct setting_turn turn = setting_turn(&run->setting, n);
    uint64_t now_ns = tool_now_ns();

    if (now_ns > due_ns + PATIENCE_NS) {
        run->left_out += is_measured(run, due_ns);
        return NULL;
    }
    if (n == run->sent_room) {
        run->sent_room = run->sent_room > 0 ? run->sent_room * 2 : 65536;
        run->sent_ns = tool_grow(run->sent_ns, run->sent_room * sizeof(uint64_t));
    }
    run->sent_ns[n] = now_ns;
    return post_write(run, turn.channel->id, turn.user->token, ret_len);
}

// Whether it is one that may be sent again later; dies where it is wrong in another way.
static bool is_refusal(const char *body, size_t len)
{
    if (http_reply_is_ok(body, len))
        return false;
    if (!memmem(body, len, "\"service_unavailable\"", 21) &&
        !memmem(body, len, "\"ratelimited\"", 13))
        http_reply_check(body, len);
    return true;
}

static void post_reply(void *owner, size_t n, const char *body, size_t len)
{
    struct overload *run = owner;
    uint64_t now_ns = tool_now_ns();
    bool refused = is_refusal(body, len);

    if (!is_measured(run, now_ns))
        return;
    samples_add(refused ? &run->refusal : &run->accepted, now_ns - run->sent_ns[n]);
}

static void slow_reply(struct http_client *client, const char *body, size_t len)
{
    struct overload *run = client->owner;
    struct slow_user *slow = &run->slow[client - run->slow_pool.clients];
    uint64_t now_ns = tool_now_ns();

    if (is_refusal(body, len)) {
        run->slow_refused += is_measured(run, slow->due_ns);
        slow->send_ns =
            now_ns + (client->retry_after_s > 0 ? client->retry_after_s : 1) * TOOL_NS_PER_S;
        return;
    }
    if (is_measured(run, slow->due_ns))
        samples_add(&run->slow_latency, now_ns - slow->due_ns);
    slow->due_ns += SLOW_EVERY_NS;
    slow->due_ns = slow->due_ns > now_ns ? slow->due_ns : now_ns;
    slow->send_ns = slow->due_ns;
}

// Sends what slow users have to send; returns when the next one is due.
static uint64_t slow_step(struct overload *run)
{
    const struct input *input = &run->setting.input;
    const struct input_channel *channel = &input->channels[input->channel_count];
    uint64_t now_ns = tool_now_ns(), next_ns = UINT64_MAX;
    size_t len;

    for (size_t i = 0; i < run->slow_pool.count; i++) {
        struct slow_user *slow = &run->slow[i];
        const char *token = input->users[channel->members[i]].token, *request;

        if (slow->client->busy || slow->due_ns >= run->load.end_ns)
            continue;
        if (slow->send_ns > now_ns) {
            next_ns = slow->send_ns < next_ns ? slow->send_ns : next_ns;
            continue;
        }
        request = post_write(run, channel->id, token, &len);
        http_client_send(slow->client, request, len, slow->due_ns, 0);
    }
    return next_ns;
}

static size_t slow_unanswered(const struct overload *run)
{
    size_t count = 0;

    for (size_t i = 0; i < run->slow_pool.count; i++)
        count += run->slow[i].due_ns < run->load.end_ns;
    return count;
}

static void slow_start(struct overload *run)
{
    http_pool_init(&run->slow_pool, run->setting.loop, run->setting.input.url, run->slow_pool.count,
                   slow_reply, run);
    run->slow = tool_alloc(run->slow_pool.count, sizeof(*run->slow));
    for (size_t i = 0; i < run->slow_pool.count; i++) {
        struct slow_user *slow = &run->slow[i];

        slow->client = &run->slow_pool.clients[i];
        slow->client->may_refuse = true;
        slow->due_ns = run->load.start_ns + SLOW_EVERY_NS * i / run->slow_pool.count;
        slow->send_ns = slow->due_ns;
    }
}

static void run_until_answered(struct overload *run)
{
    while (!load_is_over(&run->load) || slow_unanswered(run) > 0) {
        uint64_t post_ns = load_step(&run->load), slow_ns = slow_step(run);
        uint64_t now_ns = tool_now_ns(), next_ns = now_ns + TOOL_NS_PER_S / 10;

        if (now_ns > run->load.end_ns + DRAIN_NS)
            break;
        next_ns = post_ns < next_ns ? post_ns : next_ns;
        net_loop_run(run->setting.loop, slow_ns < next_ns ? slow_ns : next_ns);
    }
}

static void print_overload(struct overload *run)
{
    double seconds = (double)run->setting.plan.run_ns / (double)TOOL_NS_PER_S;

    printf("{\"rate\":%.1f,\"refused_per_s\":%.1f,\"left_out_per_s\":%.1f,\"unanswered\":%zu,"
           "\"slow_refused\":%zu,\"slow_unanswered\":%zu,",
           (double)run->accepted.count / seconds, (double)run->refusal.count / seconds,
           (double)run->left_out / seconds, run->load.sent - run->load.replies, run->slow_refused,
           slow_unanswered(run));
    samples_print(&run->accepted, "");
    fputs(",", stdout);
    samples_print(&run->refusal, "refusal_");
    fputs(",", stdout);
    samples_print(&run->slow_latency, "slow_");
    puts("}");
}

void command_overload(const struct tool_args *args)
{
    struct overload run = {0};
    struct input *input = &run.setting.input;

    setting_init(&run.setting, args, "small", 10000);
    run.setting.plan.rate = tool_args_number(args, "rate", 20000, 1, 10000000);
    run.setting.plan.may_refuse = true;
    run.setting.plan.request = post_request;
    run.setting.plan.reply = post_reply;
    run.setting.plan.owner = &run;
    memset(run.text, 'x', tool_args_number(args, "text-bytes", 256, 1, TEXT_MAX));
    input->channel_count--; // the last one is that of the slow users
    run.slow_pool.count = tool_args_number(
        args, "slow", 20, 1, (unsigned)input->channels[input->channel_count].member_count);
    load_start(&run.load, run.setting.loop, &run.setting.plan);
    slow_start(&run);
    run_until_answered(&run);
    print_overload(&run);
    load_done(&run.load);
    http_pool_done(&run.slow_pool);
    free(run.slow);
    free(run.sent_ns);
    samples_done(&run.accepted);
    samples_done(&run.refusal);
    samples_done(&run.slow_latency);
    input->channel_count++;
    setting_done(&run.setting);
}
