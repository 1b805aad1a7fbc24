// SPDX-License-Identifier: Apache-2.0
// Envelopes: events in flight to apps in Socket Mode.
#pragma once

#include "base/cleanup.h"

struct app;
struct gateway;
struct app_socket;
struct feed;
struct feed_item;

// An event of a channel to which the app socket is subscribed.
void envelope_offer(struct app_socket *app_socket, const struct feed *feed,
                    const struct feed_item *item);
void envelope_ack(struct app_socket *app_socket, const char *id);
void envelopes_leave(struct app *app, const struct app_socket *app_socket); // the socket ends
void envelopes_wake(struct app *app);                                       // a socket is ready
NODISCARD int envelopes_new(struct gateway *gateway);
void envelopes_free(struct gateway *gateway); // may be called without envelopes_new()
