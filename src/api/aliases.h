// SPDX-License-Identifier: Apache-2.0
// Other names of channels.* that Slack has: conversations.*, groups.*, im.*, mpim.*. Some differ
// only in their name; others also in the name of an argument or of a member of the reply.
#pragma once

#include "http/request.h"

// A name whose method has an argument preset, or replies differently.
struct method_alias {
    const char *name;
    const char *method;
    const char *argument; // preset to `value`; NULL: none
    const char *value;
    const char *key; // in place of "channel" or "channels" in the reply; NULL: the same
};

// The entry for `name`; NULL when there is none.
const struct method_alias *method_alias_find(const char *name);

// The name among channels.* that `name` stands for, or `name` itself. `ret_name` has `size` bytes.
const char *method_alias_resolve(const char *name, char *ret_name, size_t size);

// Sets the arguments that the method `older` has under other names, or preset.
NODISCARD int method_alias_arguments(struct request *request, const struct method_alias *alias);
