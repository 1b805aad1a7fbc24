// SPDX-License-Identifier: Apache-2.0
#include "commands.h"
#include "setting.h"

#include <stdio.h>
#include <string.h>

struct sync_run {
    char request[1024];
    size_t request_len;
    size_t reply_len; // of the last reply
};

static const char *sync_request(void *owner, size_t n, uint64_t due_ns, size_t *ret_len)
{
    struct sync_run *run = owner;

    (void)n;
    (void)due_ns;
    *ret_len = run->request_len;
    return run->request;
}

static void sync_reply(void *owner, size_t n, const char *body, size_t len)
{
    struct sync_run *run = owner;

    (void)n;
    http_reply_check(body, len < 500 ? len : 500);
    run->reply_len = len;
}

void command_sync(const struct tool_args *args)
{
    struct setting setting;
    struct sync_run run = {0};
    struct load load;
    unsigned user;

    setting_init(&setting, args, NULL, 1);
    user = tool_args_number(args, "user", 0, 0, (unsigned)setting.input.user_count - 1);
    run.request_len = setting_request(&setting, run.request, sizeof(run.request), "unread.sync",
                                      setting.input.users[user].token, "{}");
    setting.plan.total = tool_args_number(args, "total", 0, 0, UINT32_MAX);
    setting.plan.request = sync_request;
    setting.plan.reply = sync_reply;
    setting.plan.owner = &run;
    load_run(&load, setting.loop, &setting.plan);
    fputs("{", stdout);
    setting_print_load(&load);
    printf(",\"reply_bytes\":%zu}\n", run.reply_len);
    load_done(&load);
    setting_done(&setting);
}
