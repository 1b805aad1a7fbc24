// SPDX-License-Identifier: Apache-2.0
// The scopes of tokens: Tidings' names, and Slack's, which stand for the same or for less.
#pragma once

#include "base/actor.h"

struct invocation;

// The scopes of the actor's token as "a,b", also of one that has them all: what X-OAuth-Scopes
// tells. Valid as long as the actor.
const char *scopes_of(const struct actor *actor);

// In which types of channels the actor has the scope, as bits 1 << enum channel_type. All of them
// for a scope that channels do not matter to; 0: the actor does not have it.
unsigned scopes_types(const struct actor *actor, const char *scope);

// Removes the names that nobody knows from "a,b". Without any left, the list names a scope that
// permits nothing: an empty list would permit all.
void scopes_keep_known(char *scopes);
