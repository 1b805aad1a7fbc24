// SPDX-License-Identifier: Apache-2.0
// Events for apps that wait in Postgres (sql/13_push.sql).
#pragma once

#include <stddef.h>
#include <stdint.h>

struct app;
struct envelope;
struct gateway;

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

void app_backlog_extend(
    const struct app *app); // the app still has links: events are to be kept for it
void app_backlog_end(struct gateway *gateway); // the gateway is being freed

// The app acked it. Takes over `envelope`.
void app_backlog_ack(struct gateway *gateway, struct envelope *envelope);
// The app acked what this gateway does not, or no longer, know: another one may have sent it. An
// app may ack by any of its links, as Slack's SDK for Python does by the newest.
void app_backlog_ack_unknown(const struct app *app, const char *id);
// Makes the app's envelopes with `returns` set due for whichever gateway takes them next.
void app_backlog_return(struct app *app);
void app_backlog_take(struct gateway *gateway); // takes due events of apps that have links here
void app_backlog_tick(struct gateway *gateway);
