// SPDX-License-Identifier: Apache-2.0
// The app backlog: events that wait for apps in Postgres (sql/13_events_api.sql).
#pragma once

#include <stddef.h>
#include <stdint.h>

struct app;
struct envelope;
struct gateway;

// A kept event that this gateway has taken, in order to send it.
struct app_event {
    const char *app_id;
    const char *channel_id;
    int64_t seq;
    int64_t happened_us;
    const char *frame; // NULL: dropped after the last attempt
    size_t length;
    int64_t attempt;
};

// The app still has sockets: keeps events for it for another app_socket_keep_s.
void app_backlog_extend(const struct app *app);
void app_backlog_end(struct gateway *gateway); // the gateway is being freed

// The app acked it. Takes over `envelope`.
void app_backlog_ack(struct gateway *gateway, struct envelope *envelope);
// The app acked an envelope that is unknown here, or no longer known: another gateway may have sent
// it. An app may ack on any of its sockets; Slack's SDK for Python uses the newest.
void app_backlog_ack_unknown(const struct app *app, const char *id);
// Makes the app's envelopes with `returns` set due: any gateway may take them next.
void app_backlog_return(struct app *app);
void app_backlog_take(struct gateway *gateway); // takes due events of apps with room here
void app_backlog_tick(struct gateway *gateway);
