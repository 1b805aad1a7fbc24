// SPDX-License-Identifier: Apache-2.0
// Events on their way to apps in Socket Mode.
#pragma once

#include "base/list.h"
#include "events/event.h"

struct app;
struct connection;
struct gateway;
struct kept;
struct loop_timer;
struct stream;
struct stream_item;

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

struct envelopes {
    struct app *apps;
    struct list acked;  // acked envelopes that Postgres has to be told of
    struct list acking; // those that it is being told of
    int unknown_count;  // in both, of those of which only the id is known
    bool acks_asked;    // the statement that tells it is under way
    bool take_asked;    // kept events are being asked for
    bool take_soon;     // they are to be asked for again after the answer
    int64_t taken_ms;   // when kept events were last asked for
    bool timer_runs;
    struct loop_timer *timer;
};

// An event of a channel in which the link has a seat.
void envelope_offer(struct connection *c, const struct stream *stream,
                    const struct stream_item *item);
void envelope_ack(struct connection *c, const char *id);
void envelopes_leave(struct app *app, const struct connection *c); // the link `c` ends
void envelopes_wake(struct app *app);                              // a link is ready
void envelopes_free(struct app *app);
void envelope_on_timer(void *gateway);

void envelope_take(struct gateway *gateway, const struct kept *kept);
int64_t envelopes_room(const struct app *app); // how many kept events it may take; 0: no link
