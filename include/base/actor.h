// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

// What messages of a bot show of it; of people nothing.
struct actor_bot {
    char app_id[24];
    char name[324];  // at most 80 code points
    int64_t updated; // seconds
};

// The authenticated caller, from its token alone. A plain value.
struct actor {
    char workspace_id[24];
    char user_id[24];
    char token_id[24];
    char bot_id[24]; // "" for users
    char app_id[24]; // "" unless it is an app token
    struct actor_bot bot;
    char type; // 'u' user, 'b' bot, 'a' app, 'o' operator, 0 unauthenticated
    bool is_admin;
    int64_t rate_limit; // own limit, in calls per minute and method; 0: the default limit
    char scopes[512];   // "a,b"; "": all, but for one in actor_reads_email()
};

// Whether the actor's token has `scope`. A token without a scope list has all scopes, but unless it
// is an admin's not `users:read.email`.
bool actor_has_scope(const struct actor *actor, const char *scope);

// Whether the actor may see other users' e-mail addresses: as an admin, or by a token that lists
// `users:read.email`. A token without a scope list has that scope only if it is an admin's.
bool actor_reads_email(const struct actor *actor);
