// SPDX-License-Identifier: Apache-2.0
// Builds the HTTP requests to providers: pushes, and requests for Google's access token. On
// notify's thread.
#pragma once

#include "notify/notify.h"
#include "outbound/outbound.h"
#include "provider_tokens.h"

enum { PROVIDER_BODY_MAX = 65536, PROVIDER_URL_SIZE = 8192 };

struct provider_request {
    struct outbound_request http; // initialised by the caller
    char url[PROVIDER_URL_SIZE];
};

// The request of a push. -ERROR_INVALID_KEY: the app's key cannot sign. -ERROR_INVALID_ARGUMENTS:
// the address is invalid. -ERROR_TOO_LONG. -ERROR_MEMORY.
NODISCARD int provider_request_push(const struct notify_options *options,
                                    struct provider_tokens *tokens, const struct notify_push *push,
                                    struct provider_request *ret_request);

// The request for the access token of an FCM push. Same errors.
NODISCARD int provider_request_token(const struct notify_options *options,
                                     const struct notify_push *push,
                                     struct provider_request *ret_request);
