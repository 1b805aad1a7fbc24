// SPDX-License-Identifier: Apache-2.0
// Caches the tokens that authenticate pushes: providers penalise a new token for each push. On
// notify's thread.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"
#include "notify/notify.h"

#include <stdint.h>

// Apple rejects tokens older than an hour, and more than one new token in 20 minutes.
enum {
    PROVIDER_TOKENS_APNS_S = 40 * 60,
    PROVIDER_TOKENS_VAPID_S = 6 * 3600,
    PROVIDER_TOKENS_MAX = 10000
};

struct provider_tokens;

struct provider_tokens *provider_tokens_new(void);
void provider_tokens_free(struct provider_tokens *tokens); // NULL is allowed

// The provider token of an APNs app; signs a new one if the cached one is too old. Valid until the
// next call. -ERROR_INVALID_KEY, -ERROR_MEMORY.
NODISCARD int provider_tokens_apns(struct provider_tokens *tokens, const struct notify_push *push,
                                   int64_t now_s, const char **ret_token);

// The token for the push service at `origin` (RFC 8292). Likewise.
NODISCARD int provider_tokens_vapid(struct provider_tokens *tokens, const struct notify_push *push,
                                    const char *origin, int64_t now_s, const char **ret_token);

// Google's access token for a service account; NULL: no valid one is cached.
const char *provider_tokens_google(struct provider_tokens *tokens, const struct notify_push *push,
                                   int64_t now_s);
// Caches an access token that Google issued for `life_s` seconds; it is used until shortly before
// it expires.
void provider_tokens_google_put(struct provider_tokens *tokens, const struct notify_push *push,
                                const char *token, int64_t now_s, int64_t life_s);
// Removes an access token that Google rejected.
void provider_tokens_google_forget(struct provider_tokens *tokens, const struct notify_push *push);

// Appends the assertion that requests an access token. `account`: the service account.
// -ERROR_INVALID_KEY, -ERROR_MEMORY.
NODISCARD int provider_tokens_google_assertion(const json_t *account, int64_t now_s,
                                               struct buffer *out);
