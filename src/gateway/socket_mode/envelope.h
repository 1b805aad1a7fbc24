// SPDX-License-Identifier: Apache-2.0
// Events on their way to apps in Socket Mode.
#pragma once

#include "base/cleanup.h"

struct app;
struct gateway;
struct link;
struct stream;
struct stream_item;

// An event of a channel in which the link has a seat.
void envelope_offer(struct link *link, const struct stream *stream, const struct stream_item *item);
void envelope_ack(struct link *link, const char *id);
void envelopes_leave(struct app *app, const struct link *link); // the link ends
void envelopes_wake(struct app *app);                           // a link is ready
NODISCARD int envelopes_new(struct gateway *gateway);
void envelopes_free(struct gateway *gateway); // does nothing if there are none
