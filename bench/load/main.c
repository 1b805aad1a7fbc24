// SPDX-License-Identifier: Apache-2.0
#include "commands.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

struct command {
    const char *name;
    void (*run)(const struct tool_args *args);
    const char *known; // its arguments
    const char *what;
};

static const struct command commands[] = {
    {"posts", command_posts, COMMAND_ARGS_LOAD " text-bytes total rate refused",
     "closed loop, or open with a rate, of chat.postMessage: posts/s and latency"},
    {"info", command_info, COMMAND_ARGS_LOAD " rate", "open loop of channels.info: latency"},
    {"history", command_history, COMMAND_ARGS_LOAD " from-s span-s limit",
     "closed loop of conversations.history, each page from another place"},
    {"sync", command_sync, COMMAND_ARGS_LOAD " user users total",
     "closed loop of unread.sync by one user, or by several in turn"},
    {"marks", command_marks, COMMAND_ARGS_LOAD " depth",
     "closed loop of channels.mark, each to a later message: marks/s"},
    {"delivery", command_delivery, COMMAND_ARGS_LOAD " rate marks text-bytes",
     "open loop of posts: from due to the frame at each member's socket"},
    {"frames", command_frames, COMMAND_ARGS_LOAD " window text-bytes events",
     "posts as fast as their frames arrive: frames/s at all sockets"},
    {"overload", command_overload, COMMAND_ARGS_LOAD " rate slow text-bytes",
     "open loop of posts at more than can be kept, beside slow users: what is kept and refused"},
    {"reconnect", command_reconnect, COMMAND_ARGS_LOAD " rate devices window text-bytes",
     "posts to event streams that are all cut at once: until all are back, and what posts notice"},
    {"listen", command_listen, "url sockets seconds warm-ms",
     "frames/s of the floor's bare sockets"},
    {"idle", command_idle, "data group sockets pid settle-ms",
     "memory of a process by idle sockets"},
    {"pauses", command_pauses, "seconds", "how long the machine takes its cores away"},
    {"disk", command_disk, "file seconds rate", "how long the disk takes to keep a page of 8 KB"},
};

static void print_usage(void)
{
    puts("usage: tidings-bench COMMAND [--name value]...\n");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        printf("  %-9s %s\n            arguments: %s\n", commands[i].name, commands[i].what,
               commands[i].known);
}

int main(int argc, char **argv)
{
    struct tool_args args = {.count = argc - 2, .values = argv + 2};

    signal(SIGPIPE, SIG_IGN);
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        print_usage();
        return argc < 2 ? 2 : 0;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        tool_args_check(&args, commands[i].known);
        commands[i].run(&args);
        return 0;
    }
    tool_die("no command %s; see --help", argv[1]);
}
