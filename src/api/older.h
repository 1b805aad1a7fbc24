// SPDX-License-Identifier: Apache-2.0
// Slack's older names of methods: conversations.*, groups.*, im.*, mpim.* for channels.*. Some only
// sound different; others have an argument or the reply's member under another name.
#pragma once

#include "http/request.h"

// A name whose method does the same with something preset, or answers otherwise.
struct older {
    const char *name;
    const char *method;
    const char *argument; // preset to `value`; NULL: none
    const char *value;
    const char *key; // in place of "channel" or "channels" in the reply; NULL: the same
};

// The older name that `name` is; NULL when it is none of these.
const struct older *older_find(const char *name);

// The name among channels.* that `name` stands for, or `name` itself. `ret_name` has `size` bytes.
const char *older_resolve(const char *name, char *ret_name, size_t size);

// Gives a request the arguments that its method (as it was called) has under older names.
NODISCARD int older_arguments(struct request *request, const struct older *older);
