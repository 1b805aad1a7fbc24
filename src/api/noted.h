// SPDX-License-Identifier: Apache-2.0
// The message that a reaction or a pin is about.
#pragma once

#include "invocation.h"

struct noted {
    const char *channel_id;
    int64_t ts;
};

// Reads the arguments `channel` and `timestamp`. False: an error was replied.
NODISCARD bool take_noted(struct invocation *invocation, struct noted *ret_noted);

// Adds the parameters of a change of what is noted: those of every change, then channel and ts.
void noted_change_params(struct invocation *invocation, const struct noted *noted,
                         struct params *params);
