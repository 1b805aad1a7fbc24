// SPDX-License-Identifier: Apache-2.0
// Pages of a channel's history, each from another place in it.
#include "commands.h"
#include "setting.h"

#include <stdio.h>

#define PAGE_STEP 104729 // a prime: places that lie far apart come one after another

struct history {
    struct setting setting;
    unsigned from_s, span_s;
    unsigned limit;
    char request[1024];
};

static const char *page_request(void *owner, size_t n, uint64_t due_ns, size_t *ret_len)
{
    struct history *history = owner;
    struct setting_turn turn = setting_turn(&history->setting, n);
    size_t place_s = (n + 1) * PAGE_STEP % history->span_s;
    char json[256];

    (void)due_ns;
    snprintf(json, sizeof(json), "{\"channel\":\"%s\",\"latest\":\"%zu.000000\",\"limit\":%u}",
             turn.channel->id, history->from_s + place_s, history->limit);
    *ret_len = setting_request(&history->setting, history->request, sizeof(history->request),
                               "conversations.history", turn.user->token, json);
    return history->request;
}

void command_history(const struct tool_args *args)
{
    struct history history = {0};
    struct load load;

    setting_init(&history.setting, args, "small", 16);
    history.from_s = tool_args_number(args, "from-s", 0, 0, UINT32_MAX);
    history.span_s = tool_args_number(args, "span-s", 1, 1, UINT32_MAX);
    history.limit = tool_args_number(args, "limit", 50, 1, 1000);
    history.setting.plan.request = page_request;
    history.setting.plan.owner = &history;
    load_run(&load, history.setting.loop, &history.setting.plan);
    fputs("{", stdout);
    setting_print_load(&load);
    puts("}");
    load_done(&load);
    setting_done(&history.setting);
}
