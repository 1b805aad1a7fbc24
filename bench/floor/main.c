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

static const struct mode {
    const char *name;
    void (*run)(const struct tool_args *args);
    const char *known; // its arguments
} modes[] = {
    {"posts", floor_posts, "port database redis"},
    {"delivery", floor_posts, "port database data frame-bytes"},
    {"reads", floor_reads, "port database data"},
    {"sockets", floor_sockets, "port sockets frame-bytes"},
};

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = stop};

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
    struct tool_args args = {.count = argc - 2, .values = argv + 2};

    catch_signals();
    for (size_t i = 0; argc >= 2 && i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(argv[1], modes[i].name) != 0)
            continue;
        tool_args_check(&args, modes[i].known);
        modes[i].run(&args);
        return 0;
    }
    puts("usage: tidings-floor MODE [--name value]...\n");
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        printf("  %-9s arguments: %s\n", modes[i].name, modes[i].known);
    return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
}
