// SPDX-License-Identifier: Apache-2.0
#include "load.h"

#include "../common/tool.h"

#define LATE_NS (10 * TOOL_NS_PER_S)

static void client_rest(struct load *load, struct http_client *client, uint64_t now_ns)
{
    client->rests_until_ns = now_ns + client->retry_after_s * TOOL_NS_PER_S;
    client->next_idle = NULL;
    if (load->resting)
        load->last_resting->next_idle = client;
    else
        load->resting = client;
    load->last_resting = client;
}

static void clients_resume(struct load *load, uint64_t now_ns)
{
    while (load->resting && load->resting->rests_until_ns <= now_ns) {
        struct http_client *client = load->resting;

        load->resting = client->next_idle;
        http_pool_give(&load->pool, client);
    }
}

static void on_reply(struct http_client *client, const char *body, size_t len)
{
    struct load *load = client->owner;
    uint64_t now = tool_now_ns();

    load->replies++;
    if (now >= load->warm_until_ns && now < load->end_ns)
        load->measured++;
    if (client->due_ns >= load->warm_until_ns)
        samples_add(&load->latency, now - client->due_ns);
    load->plan.reply(load->plan.owner, client->tag, body, len);
    if (load->plan.may_refuse && client->retry_after_s > 0)
        client_rest(load, client, now);
    else
        http_pool_give(&load->pool, client);
}

void load_start(struct load *load, struct net_loop *loop, const struct load_plan *plan)
{
    *load = (struct load){.plan = *plan};
    http_pool_init(&load->pool, loop, plan->url, plan->clients, on_reply, load);
    for (unsigned i = 0; i < plan->clients; i++)
        load->pool.clients[i].may_refuse = plan->may_refuse;
    load->start_ns = tool_now_ns();
    load->warm_until_ns = load->start_ns + plan->warm_ns;
    load->end_ns = load->warm_until_ns + plan->run_ns;
}

void load_done(struct load *load)
{
    http_pool_done(&load->pool);
    samples_done(&load->latency);
}

static uint64_t slot_due_ns(const struct load *load)
{
    if (load->plan.rate == 0)
        return tool_now_ns();
    return load->start_ns + (uint64_t)load->slots * TOOL_NS_PER_S / load->plan.rate;
}

static bool all_sent(const struct load *load, uint64_t due_ns)
{
    return due_ns >= load->end_ns || (load->plan.total > 0 && load->sent >= load->plan.total);
}

static void send_next(struct load *load, uint64_t due_ns)
{
    size_t len;
    const char *request = load->plan.request(load->plan.owner, load->sent, due_ns, &len);

    if (!request)
        return;
    http_client_send(http_pool_take(&load->pool), request, len, due_ns, load->sent);
    load->sent++;
}

uint64_t load_step(struct load *load)
{
    uint64_t now = tool_now_ns();

    clients_resume(load, now);
    for (;;) {
        uint64_t due_ns = slot_due_ns(load);
        size_t sent = load->sent;

        if (all_sent(load, due_ns) || !load->pool.idle)
            return UINT64_MAX;
        if (due_ns > now && load->plan.rate > 0)
            return due_ns;
        send_next(load, due_ns);
        if (load->sent == sent && load->plan.rate == 0)
            return UINT64_MAX;
        load->slots++;
    }
}

bool load_is_over(const struct load *load)
{
    return load->replies == load->sent && all_sent(load, slot_due_ns(load));
}

void load_finish(struct load *load, struct net_loop *loop)
{
    while (!load_is_over(load)) {
        uint64_t next_ns = load_step(load), now = tool_now_ns();

        if (now > load->end_ns + LATE_NS)
            tool_die("%zu of %zu requests are unanswered", load->sent - load->replies, load->sent);
        net_loop_run(loop, next_ns < now + TOOL_NS_PER_S / 10 ? next_ns : now + TOOL_NS_PER_S / 10);
    }
}

void load_run(struct load *load, struct net_loop *loop, const struct load_plan *plan)
{
    load_start(load, loop, plan);
    load_finish(load, loop);
}

double load_rate(const struct load *load)
{
    uint64_t now = tool_now_ns();
    uint64_t until_ns = now < load->end_ns ? now : load->end_ns;

    return (double)load->measured * 1e9 / (double)(until_ns - load->warm_until_ns);
}
