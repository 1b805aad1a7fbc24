// SPDX-License-Identifier: Apache-2.0
#include "setting.h"

#include <stdio.h>

static void reply_check(void *owner, size_t n, const char *body, size_t len)
{
    (void)owner;
    (void)n;
    http_reply_check(body, len);
}

void setting_init(struct setting *setting, const struct tool_args *args, const char *group,
                  unsigned clients)
{
    const char *path = tool_args_text(args, "data", NULL);

    if (!path)
        tool_die("--data names the file of the set-up");
    *setting = (struct setting){.loop = net_loop_new()};
    input_read(&setting->input, path, group ? tool_args_text(args, "group", group) : NULL);
    setting->plan = (struct load_plan){
        .url = setting->input.url,
        .clients = tool_args_number(args, "clients", clients, 1, 15000),
        .warm_ns = tool_args_number(args, "warm-ms", 300, 0, 60000) * TOOL_NS_PER_MS,
        .run_ns = tool_args_number(args, "seconds", 3, 1, 600) * TOOL_NS_PER_S,
        .reply = reply_check,
    };
}

void setting_done(struct setting *setting)
{
    input_done(&setting->input);
    net_loop_free(setting->loop);
}

struct setting_turn setting_turn(const struct setting *setting, size_t n)
{
    const struct input *input = &setting->input;
    size_t index = n % input->channel_count;
    const struct input_channel *channel = &input->channels[index];
    size_t member = n / input->channel_count % channel->member_count;

    return (struct setting_turn){.channel = channel,
                                 .channel_index = index,
                                 .member = member,
                                 .user = &input->users[channel->members[member]]};
}

size_t setting_request(const struct setting *setting, char *ret_request, size_t room,
                       const char *method, const char *token, const char *json)
{
    return http_request_write(ret_request, room, method, token, setting->input.host, json);
}

void setting_print_load(struct load *load)
{
    printf("\"rate\":%.1f,\"sent\":%zu,", load_rate(load), load->sent);
    samples_print(&load->latency, "");
}
