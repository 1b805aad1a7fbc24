// SPDX-License-Identifier: Apache-2.0
// What every load command starts with: its input, its loop and a plan filled from the common
// arguments.
#ifndef TIDINGS_BENCH_SETTING_H
#define TIDINGS_BENCH_SETTING_H

#include "../common/tool.h"
#include "input.h"
#include "load.h"

struct setting {
    struct input input;
    struct net_loop *loop;
    struct load_plan plan; // url, clients, warm_ns and run_ns are filled
};

// `group` NULL: no channels are read.
void setting_init(struct setting *setting, const struct tool_args *args, const char *group,
                  unsigned clients);
void setting_done(struct setting *setting);

// The n-th of a rotation through all channels first, then through each channel's members.
struct setting_turn {
    const struct input_channel *channel;
    size_t channel_index;
    size_t member; // place in channel->members
    const struct input_user *user;
};
struct setting_turn setting_turn(const struct setting *setting, size_t n);

// Writes a POST of `method` by `token`; dies where it does not fit. Returns its length.
size_t setting_request(const struct setting *setting, char *ret_request, size_t room,
                       const char *method, const char *token, const char *json);

// Prints the results of a load without the braces.
void setting_print_load(struct load *load);

#endif
