// SPDX-License-Identifier: Apache-2.0
// An event for an app in Socket Mode on its way (envelope.c), and what is kept of it in Postgres
// (kept.c).
#pragma once

#include "gateway_internal.h"

enum { UUID_SIZE = 37 };

enum envelope_state {
    ENVELOPE_ASKED, // Redis is asked whether this gateway makes the first attempt
    ENVELOPE_SENT,  // and not acked yet
    ENVELOPE_OVER,  // its time is over; a late ack still counts
};

struct envelope {
    struct list link; // in its app's envelopes, or among those acked
    char app_id[EVENT_ID_SIZE];
    char id[UUID_SIZE];
    char channel_id[EVENT_ID_SIZE];
    int64_t seq; // negative: of an app_mention (chat/app_mention.h)
    int64_t happened_us;
    int64_t due_ms; // the end of its state
    int64_t attempt;
    enum envelope_state state;
    bool returns;            // see kept_return()
    struct connection *sent; // by which link, while it is there
    size_t length;
    char frame[];
};

// What was kept, and is now this gateway's to send.
struct kept {
    const char *app_id;
    const char *channel_id;
    int64_t seq;
    int64_t happened_us;
    const char *frame; // NULL: all attempts were made, it is dropped
    size_t length;
    int64_t attempt;
};

// envelope.c
void envelope_take(struct gateway *gateway, const struct kept *kept);
int64_t envelopes_room(const struct app *app); // for how many kept ones it may ask; 0: no link

// kept.c
// The app acked it. Takes over `envelope`.
void kept_ack(struct gateway *gateway, struct envelope *envelope);
// Those of an app that are marked so go to whatever link takes them next.
void kept_return(struct app *app);
void kept_take(struct gateway *gateway); // asks for what the apps with links here may get
void kept_tick(struct gateway *gateway);
