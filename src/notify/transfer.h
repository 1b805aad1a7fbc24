// SPDX-License-Identifier: Apache-2.0
// An HTTP request to a provider: a push, or a request for Google's access token. On notify's
// thread.
#pragma once

#include "answer.h"
#include "notify/notify.h"
#include "provider_tokens.h"

#include <curl/curl.h>

struct transfer {
    uint32_t tag;
    void *owner;   // the creator's
    bool is_token; // requests Google's access token
    CURL *easy;
    struct curl_slist *headers;
    struct buffer body;   // the request body; must not change during the transfer
    struct buffer answer; // the first bytes of the response
    bool public_only;     // must not connect to a private address
    bool address_refused;
    int64_t begun_us;
    char error[CURL_ERROR_SIZE];
};

// Prepares the request of a push. -ERROR_INVALID_KEY: the app's key cannot sign.
// -ERROR_INVALID_ARGUMENTS: the address is invalid. -ERROR_TOO_LONG. -ERROR_MEMORY.
NODISCARD int transfer_new_push(const struct notify_options *options,
                                struct provider_tokens *tokens, const struct notify_push *push,
                                void *owner, struct transfer **ret_transfer);

// Prepares the request for the access token of an FCM push. Same errors.
NODISCARD int transfer_new_token(const struct notify_options *options,
                                 const struct notify_push *push, void *owner,
                                 struct transfer **ret_transfer);
void transfer_free(struct transfer *transfer); // NULL is allowed

// The response of a transfer that has ended with `code`. Strings are owned by the transfer.
struct answer_source transfer_answer(const struct transfer *transfer, CURLcode code);

// Closes the connection it used, which ends all other transfers on it.
void transfer_disconnect(struct transfer *transfer);
