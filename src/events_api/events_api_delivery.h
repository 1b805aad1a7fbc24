// SPDX-License-Identifier: Apache-2.0
// One request to an app's events_url: an event, or the challenge that must be answered before the
// first. On the push thread.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/list.h"
#include "events/event.h"
#include "events_api/events_api.h"

#include <curl/curl.h>

enum { DELIVERY_TRIES_MAX = 4, DELIVERY_ENDED = -1 };

// What a row of app_events and its app say. Texts belong to the row.
struct delivery_source {
    struct {
        const char *app_id, *workspace_id, *bot_user_id, *channel_id;
        const char *url, *secret;
    } to;
    int64_t seq; // 0: a challenge; negative: an app_mention (chat/app_mention.h)
    int64_t happened_us;
    const char *frame;
    size_t frame_length;
    int64_t tries;      // this one counted
    const char *reason; // why the last one failed
};

struct delivery {
    uint32_t tag;
    struct list link; // of the one who holds it
    char app_id[EVENT_ID_SIZE];
    char channel_id[EVENT_ID_SIZE];
    int64_t seq;
    int64_t tries;
    char challenge[TOKEN_SIZE]; // "" for an event
    CURL *easy;
    struct curl_slist *headers;
    struct buffer body;   // what is sent: must stay as it is meanwhile
    struct buffer answer; // the first bytes
    size_t head_length;
    bool private_allowed;
    bool address_refused;
    bool no_retry;      // the app said so
    int64_t wait_ms;    // once settled: until the next try, or DELIVERY_ENDED
    const char *reason; // static; "" when it was taken
};

// Makes a request that is ready to go. -ERROR_MEMORY.
NODISCARD int delivery_new(const struct delivery_source *source,
                           const struct events_api_options *options,
                           struct delivery **ret_delivery);
void delivery_free(struct delivery *delivery);

// The request is over: decides what becomes of the event, and counts.
void delivery_settle(struct delivery *delivery, CURLcode code,
                     const struct events_api_options *options);
