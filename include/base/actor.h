// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Who calls, as the token says (and nothing else). A plain value.
struct actor {
    char workspace_id[24];
    char user_id[24];
    char token_id[24];
    char bot_id[24]; // "" for people
    char app_id[24]; // "" but for an app token
    char type;       // 'u' user, 'b' bot, 'a' app, 'o' operator, 0 nobody
    bool is_admin;
    int64_t rate_limit; // the token's own limit, calls a minute to each method; 0: the general one
    char scopes[512];   // "a,b"; "" = all
};

// Whether the actor's token has `scope`; a token without scopes has every one.
bool actor_has_scope(const struct actor *actor, const char *scope);
