// SPDX-License-Identifier: Apache-2.0
// One HTTP request to a provider: a push, or the request for Google's access token. Of the thread
// of notify.
#pragma once

#include "answer.h"
#include "notify/notify.h"
#include "provider_tokens.h"

#include <curl/curl.h>

struct transfer {
    uint32_t tag;
    void *owner;   // of who made it
    bool is_token; // asks for Google's access token
    CURL *easy;
    struct curl_slist *headers;
    struct buffer body;   // what is sent: must stay as it is meanwhile
    struct buffer answer; // the first bytes
    bool public_only;     // must not connect to a private address
    bool address_refused;
    int64_t begun_us;
    char error[CURL_ERROR_SIZE];
};

// Makes the request of a push, ready to go. -ERROR_INVALID_KEY: the app's key signs nothing.
// -ERROR_INVALID_ARGUMENTS: the address is none. -ERROR_TOO_LONG. -ERROR_MEMORY.
NODISCARD int transfer_new_push(const struct notify_options *options,
                                struct provider_tokens *tokens, const struct notify_push *push,
                                void *owner, struct transfer **ret_transfer);

// Makes the request for the access token of a push of FCM. As above.
NODISCARD int transfer_new_token(const struct notify_options *options,
                                 const struct notify_push *push, void *owner,
                                 struct transfer **ret_transfer);
void transfer_free(struct transfer *transfer); // takes NULL

// What came back, once it is over by `code`. Texts are the transfer's.
struct answer_source transfer_answer(const struct transfer *transfer, CURLcode code);

// Breaks the connection that it used, and all others that share it.
void transfer_disconnect(struct transfer *transfer);
