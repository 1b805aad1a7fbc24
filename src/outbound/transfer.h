// SPDX-License-Identifier: Apache-2.0
// A request that is held: libcurl's handle with the guards around it.
#pragma once

#include "base/list.h"
#include "outbound/outbound.h"

#include <curl/curl.h>

struct transfer {
    uint32_t tag;
    struct list link; // in the sender's lists
    outbound_fn *fn;
    void *arg;
    CURL *easy;
    struct curl_slist *headers;
    struct buffer body;   // of the request; must not change during the transfer
    struct buffer answer; // the first bytes of the answer
    size_t head_length;   // of the answer
    int64_t size;         // counted by the sender
    int64_t begun_us;
    bool private_allowed;
    bool address_refused;
    char error[CURL_ERROR_SIZE];
};

// Prepares a request, and takes its body. -ERROR_MEMORY: or a part of it is too long. Any thread.
NODISCARD int transfer_new(struct outbound_request *request, outbound_fn *fn, void *arg,
                           struct transfer **ret_transfer);
void transfer_free(struct transfer *transfer);

struct transfer *transfer_of(CURL *easy);

// What became of a transfer that has ended with `code`. Owned by the transfer.
struct outbound_answer transfer_answer(struct transfer *transfer, CURLcode code);

// The descriptor of its connection, which others may use too; -1: it is closed.
int transfer_socket(const struct transfer *transfer);

// Closes its connection, which ends all other transfers on it.
void transfer_disconnect(const struct transfer *transfer);
