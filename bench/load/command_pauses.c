// SPDX-License-Identifier: Apache-2.0
// How long the machine takes its cores away (a hypervisor, interrupts, other work): what no server
// on it can be quicker than. A thread on each core does nothing but read the clock.
#include "commands.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LONG_MS = 1, VERY_LONG_MS = 3 };

struct watch {
    pthread_t thread;
    int core;
    uint64_t until_ns;
    uint64_t longest_ns;
    uint64_t long_ns; // sum of the pauses of LONG_MS and more
    unsigned long_count;
    unsigned very_long_count;
};

static void pause_record(struct watch *watch, uint64_t ns)
{
    if (ns > watch->longest_ns)
        watch->longest_ns = ns;
    if (ns >= LONG_MS * TOOL_NS_PER_MS) {
        watch->long_count++;
        watch->long_ns += ns;
    }
    if (ns >= VERY_LONG_MS * TOOL_NS_PER_MS)
        watch->very_long_count++;
}

static void *watch_run(void *arg)
{
    struct watch *watch = arg;
    cpu_set_t cores;

    CPU_ZERO(&cores);
    CPU_SET((size_t)watch->core, &cores);
    pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores); // where it may not, anywhere
    for (uint64_t last_ns = tool_now_ns(); last_ns < watch->until_ns;) {
        uint64_t now_ns = tool_now_ns();
        pause_record(watch, now_ns - last_ns);
        last_ns = now_ns;
    }
    return NULL;
}

static void watches_print(const struct watch *watches, int cores, unsigned seconds)
{
    struct watch all = {0};

    for (int i = 0; i < cores; i++) {
        all.long_count += watches[i].long_count;
        all.very_long_count += watches[i].very_long_count;
        all.long_ns += watches[i].long_ns;
        if (watches[i].longest_ns > all.longest_ns)
            all.longest_ns = watches[i].longest_ns;
    }
    printf("{\"seconds\":%u,\"cores\":%d,\"over_1_ms\":%u,\"over_3_ms\":%u,\"longest_ms\":%.2f,"
           "\"lost_percent\":%.2f}\n",
           seconds, cores, all.long_count, all.very_long_count,
           (double)all.longest_ns / TOOL_NS_PER_MS,
           100.0 * (double)all.long_ns / (1000.0 * TOOL_NS_PER_MS * seconds * cores));
}

void command_pauses(const struct tool_args *args)
{
    unsigned seconds = tool_args_number(args, "seconds", 3, 1, 60);
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    struct watch *watches = tool_alloc((size_t)cores, sizeof(*watches));
    uint64_t until_ns = tool_now_ns() + seconds * 1000 * TOOL_NS_PER_MS;

    for (int i = 0; i < cores; i++) {
        watches[i] = (struct watch){.core = i, .until_ns = until_ns};
        if (pthread_create(&watches[i].thread, NULL, watch_run, &watches[i]) != 0)
            tool_die("no thread");
    }
    for (int i = 0; i < cores; i++)
        pthread_join(watches[i].thread, NULL);
    watches_print(watches, cores, seconds);
    free(watches);
}
