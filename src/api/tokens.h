// SPDX-License-Identifier: Apache-2.0
// Resolves tokens to actors. Results are cached for a short time; calls that arrive during a lookup
// share its result.
#pragma once

#include "invocation.h"

struct token_cache;

// At most `entries_max` tokens; invalid ones are evicted first. Tokens that were not valid at their
// previous lookup share at most `lookups_max` concurrent lookups.
struct token_cache_options {
    bool of_webhooks;    // the secrets of incoming webhooks are looked up instead
    struct cache *redis; // delivers other instances' revocations; NULL: they are not received
    int64_t max_age_ms;  // maximum age of a cached result while revocations are received
    int64_t entries_max;
    int64_t lookups_max;
};

NODISCARD int token_cache_new(struct api *api, const struct token_cache_options *options,
                              struct token_cache **ret_cache);
void token_cache_free(struct token_cache *cache);

// Invalidates cached results of a token, or of all tokens of a user or app; later lookups read
// Postgres. `id` NULL: everything.
void token_cache_invalidate(struct token_cache *cache, const char *id);

// A JWT that was not seen before logs its bearer in (jwt_login.h).
// r: 0 with the actor, or -ERROR_INVALID_AUTH, -ERROR_INVALID_TOKEN (a JWT that is too long or
// void), -ERROR_TOKEN_REVOKED, -ERROR_TOKEN_EXPIRED, -ERROR_ACCOUNT_INACTIVE, -ERROR_UNAVAILABLE,
// -ERROR_BUSY (too many lookups). Called inside token_look_up() or on a later turn.
typedef void token_fn(struct invocation *invocation, int r, const struct actor *actor);
void token_look_up(struct token_cache *cache, const char *token, struct invocation *invocation,
                   token_fn *fn);
