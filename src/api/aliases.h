// SPDX-License-Identifier: Apache-2.0
// Slack's other names for channels.*: conversations.*, groups.*, im.*, mpim.*. Most differ in name
// only; others also in the name of an argument or of a reply's member.
#pragma once

#include "call/request.h"

// An alias with a preset argument or a different reply.
struct method_alias {
    const char *name;
    const char *method;
    const char *argument; // preset to `value`; NULL: none
    const char *value;
    const char *key; // replaces "channel" or "channels" in the reply; NULL: unchanged
};

// The entry for `name`. NULL: none.
const struct method_alias *method_alias_find(const char *name);

// The channels.* name that `name` is an alias of, or `name` itself. `ret_name` has `size` bytes.
const char *method_alias_resolve(const char *name, char *ret_name, size_t size);

// Sets the request's arguments that `alias` names differently or presets.
NODISCARD int method_alias_arguments(struct request *request, const struct method_alias *alias);
