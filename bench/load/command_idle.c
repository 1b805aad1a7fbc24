// SPDX-License-Identifier: Apache-2.0
#include "commands.h"
#include "sockets.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned long resident_kb(unsigned pid)
{
    char path[64], line[256];
    unsigned long kb = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%u/status", pid);
    file = fopen(path, "re");
    if (!file)
        tool_die("no process %u", pid);
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, "VmRSS: %lu", &kb) == 1)
            break;
    fclose(file);
    return kb;
}

static void ignore_frame(struct ws_socket *socket, const char *text, size_t len)
{
    (void)socket;
    (void)text;
    (void)len;
}

static void settle(struct setting *setting, unsigned ms)
{
    uint64_t until_ns = tool_now_ns() + ms * TOOL_NS_PER_MS;

    while (tool_now_ns() < until_ns)
        net_loop_run(setting->loop, until_ns);
}

void command_idle(const struct tool_args *args)
{
    struct setting setting;
    struct sockets sockets;
    unsigned pid = tool_args_number(args, "pid", 0, 1, 1u << 30);
    unsigned ms = tool_args_number(args, "settle-ms", 1000, 0, 60000);
    unsigned long before_kb, after_kb;

    setting_init(&setting, args, "small", 1);
    sockets.count = tool_args_number(args, "sockets", 4000, 1, 15000);
    sockets.list = tool_alloc(sockets.count, sizeof(struct ws_socket));
    for (size_t i = 0; i < sockets.count; i++)
        sockets.list[i] = (struct ws_socket){
            .conn.fd = -1, .user = (size_t)(setting_turn(&setting, i).user - setting.input.users)};
    before_kb = resident_kb(pid);
    sockets_open(&sockets, &setting, ignore_frame, NULL);
    settle(&setting, ms);
    after_kb = resident_kb(pid);
    printf("{\"sockets\":%zu,\"before_kb\":%lu,\"after_kb\":%lu,\"socket_kb\":%.2f,"
           "\"closed\":%zu}\n",
           sockets.count, before_kb, after_kb,
           ((double)after_kb - (double)before_kb) / (double)sockets.count,
           sockets_count_closed(&sockets));
    sockets_close(&sockets);
    free(sockets.list);
    setting_done(&setting);
}
