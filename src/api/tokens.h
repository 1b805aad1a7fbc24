// SPDX-License-Identifier: Apache-2.0
// Who a token stands for. Believed for a short time without asking Postgres again; calls that come
// while one asks share its answer.
#pragma once

#include "invocation.h"

struct token_cache;

// Of at most `entries_max` tokens; when there are more, those that are no good go first.
// Postgres is asked for at most `lookups_max` tokens at once that were not good when last looked
// at.
struct token_cache_options {
    struct cache *redis; // that brings what other instances revoke; NULL: it is not heard of
    int64_t believe_ms;  // where that is heard
    int64_t entries_max;
    int64_t lookups_max;
};

NODISCARD int token_cache_new(struct store *store, const struct token_cache_options *options,
                              struct token_cache **ret_cache);
void token_cache_free(struct token_cache *cache);

// What was known of a token, or the tokens of a user or an app, may be wrong: look-ups from now on
// ask Postgres after this. `id` NULL: what is known of all.
void token_cache_doubt(struct token_cache *cache, const char *id);

// r: 0 with the actor, or -ERROR_INVALID_AUTH, -ERROR_TOKEN_REVOKED, -ERROR_TOKEN_EXPIRED,
// -ERROR_ACCOUNT_INACTIVE, -ERROR_UNAVAILABLE, -ERROR_BUSY (too many are looked up). May be called
// inside the call, or on a later turn.
typedef void token_fn(struct invocation *invocation, int r, const struct actor *actor);
void token_look_up(struct token_cache *cache, const char *token, struct invocation *invocation,
                   token_fn *fn);
