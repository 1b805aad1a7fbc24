// SPDX-License-Identifier: Apache-2.0
#include "floor.h"

#include <stdio.h>
#include <string.h>

volatile sig_atomic_t floor_stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    floor_stopped = 1;
}

void floor_say_ready(void)
{
    puts("ready");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct tool_args args = {.count = argc - 2, .values = argv + 2};
    struct sigaction action = {.sa_handler = stop};

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (argc >= 2 && strcmp(argv[1], "posts") == 0) {
        tool_args_check(&args, "port database redis");
        floor_posts(&args);
        return 0;
    }
    if (argc >= 2 && strcmp(argv[1], "sockets") == 0) {
        tool_args_check(&args, "port sockets frame-bytes");
        floor_sockets(&args);
        return 0;
    }
    puts("usage: tidings-floor posts --port P --database URL [--redis PORT]\n"
         "       tidings-floor sockets --port P [--sockets N] [--frame-bytes N]");
    return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
}
