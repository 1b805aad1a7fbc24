// SPDX-License-Identifier: Apache-2.0
// Events on their way to apps in Socket Mode (envelope.c), and those that are kept in Postgres
// (kept.c).
#pragma once

#include "gateway_internal.h"

enum { UUID_SIZE = 37 };

enum envelope_state {
    ENVELOPE_ASKED, // Redis is asked whether this gateway makes the first attempt
    ENVELOPE_SENT,  // not acked yet
    ENVELOPE_OVER,  // its time is over; a late ack still counts
};

struct envelope {
    struct list link; // in its app's envelopes, or among those acked
    char app_id[EVENT_ID_SIZE];
    char id[UUID_SIZE];
    char channel_id[EVENT_ID_SIZE]; // "": acked, and only the id is known
    int64_t seq;                    // negative: of an app_mention (chat/app_mention.h)
    int64_t happened_us;
    int64_t due_ms; // the end of its state
    int64_t attempt;
    enum envelope_state state;
    bool returns;            // see kept_return()
    struct connection *sent; // the link it was sent by, while that exists
    size_t length;
    char frame[];
};

// A kept event that this gateway has taken, to send it.
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
int64_t envelopes_room(const struct app *app); // how many kept events it may take; 0: no link

// kept.c
// The app acked it. Takes over `envelope`.
void kept_ack(struct gateway *gateway, struct envelope *envelope);
// The app acked what this gateway does not, or no longer, know: another one may have sent it. An
// app may ack by any of its links, as Slack's SDK for Python does by the newest.
void kept_ack_unknown(const struct app *app, const char *id);
// Makes the app's envelopes with `returns` set due for whichever gateway takes them next.
void kept_return(struct app *app);
void kept_take(struct gateway *gateway); // takes due events of apps that have links here
void kept_tick(struct gateway *gateway);
