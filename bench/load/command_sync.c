// SPDX-License-Identifier: Apache-2.0
#include "commands.h"
#include "setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define REQUEST_ROOM 1024

struct sync_run {
    char (*requests)[REQUEST_ROOM]; // of each user, sent in rotation
    size_t *lens;
    size_t count;
    size_t reply_len; // of the last reply
};

static const char *sync_request(void *owner, size_t n, uint64_t due_ns, size_t *ret_len)
{
    struct sync_run *run = owner;

    (void)due_ns;
    *ret_len = run->lens[n % run->count];
    return run->requests[n % run->count];
}

static void sync_reply(void *owner, size_t n, const char *body, size_t len)
{
    struct sync_run *run = owner;

    (void)n;
    http_reply_check(body, len < 500 ? len : 500);
    run->reply_len = len;
}

// The requests of `users` users, the first of whom is `user`.
static void sync_init(struct sync_run *run, const struct setting *setting,
                      const struct tool_args *args)
{
    unsigned all = (unsigned)setting->input.user_count;
    unsigned user = tool_args_number(args, "user", 0, 0, all - 1);

    run->count = tool_args_number(args, "users", 1, 1, all - user);
    run->requests = tool_alloc(run->count, REQUEST_ROOM);
    run->lens = tool_alloc(run->count, sizeof(size_t));
    for (size_t i = 0; i < run->count; i++)
        run->lens[i] = setting_request(setting, run->requests[i], REQUEST_ROOM, "unread.sync",
                                       setting->input.users[user + i].token, "{}");
}

void command_sync(const struct tool_args *args)
{
    struct setting setting;
    struct sync_run run = {0};
    struct load load;
    clock_t began;
    double cpu_s;

    setting_init(&setting, args, NULL, 1);
    sync_init(&run, &setting, args);
    setting.plan.total = tool_args_number(args, "total", 0, 0, UINT32_MAX);
    setting.plan.request = sync_request;
    setting.plan.reply = sync_reply;
    setting.plan.owner = &run;
    began = clock();
    load_run(&load, setting.loop, &setting.plan);
    cpu_s = (double)(clock() - began) / CLOCKS_PER_SEC;
    fputs("{", stdout);
    setting_print_load(&load);
    printf(",\"reply_bytes\":%zu,\"cpu_s\":%.3f}\n", run.reply_len, cpu_s);
    load_done(&load);
    setting_done(&setting);
    free(run.requests);
    free(run.lens);
}
