// SPDX-License-Identifier: Apache-2.0
// Events on their way to apps in Socket Mode.
#pragma once

#include "base/cleanup.h"

struct app;
struct gateway;
struct app_socket;
struct feed;
struct feed_item;

// An event of a channel in which the app_socket has a subscriber.
void envelope_offer(struct app_socket *app_socket, const struct feed *feed,
                    const struct feed_item *item);
void envelope_ack(struct app_socket *app_socket, const char *id);
void envelopes_leave(struct app *app, const struct app_socket *app_socket); // the app_socket ends
void envelopes_wake(struct app *app);                                       // a app_socket is ready
NODISCARD int envelopes_new(struct gateway *gateway);
void envelopes_free(struct gateway *gateway); // does nothing if there are none
