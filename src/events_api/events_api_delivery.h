// SPDX-License-Identifier: Apache-2.0
// A request to an app's events_url: an event, or the challenge that must be answered before the
// first event. On the thread of the Events API.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/list.h"
#include "events/event.h"
#include "events_api/events_api.h"
#include "outbound/outbound.h"

// DELIVERY_BYTES_MAX: more than a request can have.
enum { DELIVERY_TRIES_MAX = 4, DELIVERY_ENDED = -1, DELIVERY_BYTES_MAX = 9 << 20 };

// A row of app_events with its app. Strings are owned by the row.
struct delivery_source {
    struct {
        const char *app_id, *workspace_id, *bot_user_id, *channel_id;
        const char *url, *secret;
    } to;
    int64_t seq; // 0: a challenge; negative: an app_mention (chat/app_mention.h)
    int64_t happened_us;
    const char *frame;
    size_t frame_length;
    int64_t tries;      // including this one
    const char *reason; // why the previous one failed
};

struct delivery {
    uint32_t tag;
    struct list link; // in the holder's lists
    char app_id[EVENT_ID_SIZE];
    char channel_id[EVENT_ID_SIZE];
    int64_t seq;
    int64_t tries;
    char challenge[TOKEN_SIZE]; // "": an event
    bool is_built;              // otherwise it cannot be sent, and fails
    struct outbound_request request;
    char *url;          // of the request
    void *arg;          // the sender's
    int64_t wait_ms;    // once settled: delay until the next attempt, or DELIVERY_ENDED
    const char *reason; // static; "": accepted
};

// Prepares a request. -ERROR_MEMORY.
NODISCARD int delivery_new(const struct delivery_source *source,
                           const struct events_api_options *options,
                           struct delivery **ret_delivery);
void delivery_free(struct delivery *delivery);

// Call when the request has ended: decides whether the event is delivered, retried or dropped, and
// counts it.
void delivery_settle(struct delivery *delivery, const struct outbound_answer *answer,
                     const struct events_api_options *options);
