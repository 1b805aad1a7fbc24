// SPDX-License-Identifier: Apache-2.0
// The tokens that pushes carry, kept and shared: providers punish who makes a new one for each
// push. Of the thread of notify.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"
#include "notify/notify.h"

#include <stdint.h>

// Apple refuses a token that is older than an hour, and more than one in 20 minutes.
enum {
    PROVIDER_TOKENS_APNS_S = 40 * 60,
    PROVIDER_TOKENS_VAPID_S = 6 * 3600,
    PROVIDER_TOKENS_MAX = 10000
};

struct provider_tokens;

struct provider_tokens *provider_tokens_new(void);
void provider_tokens_free(struct provider_tokens *tokens); // takes NULL

// The provider token of an app of APNs, made when there is none young enough. Valid until the next
// call. -ERROR_INVALID_KEY, -ERROR_MEMORY.
NODISCARD int provider_tokens_apns(struct provider_tokens *tokens, const struct notify_push *push,
                                   int64_t now_s, const char **ret_token);

// The token for the push service at `origin` (RFC 8292). As above.
NODISCARD int provider_tokens_vapid(struct provider_tokens *tokens, const struct notify_push *push,
                                    const char *origin, int64_t now_s, const char **ret_token);

// Google's access token for a service account; NULL: there is none that still holds.
const char *provider_tokens_google(struct provider_tokens *tokens, const struct notify_push *push,
                                   int64_t now_s);
// Keeps one that Google gave for `life_s` seconds; it is used until shortly before their end.
void provider_tokens_google_keep(struct provider_tokens *tokens, const struct notify_push *push,
                                 const char *token, int64_t now_s, int64_t life_s);
// Google refused it.
void provider_tokens_google_forget(struct provider_tokens *tokens, const struct notify_push *push);

// The assertion by which an access token is asked for. `account` is the service account.
// -ERROR_INVALID_KEY, -ERROR_MEMORY.
NODISCARD int provider_tokens_google_assertion(const json_t *account, int64_t now_s,
                                               struct buffer *out);
