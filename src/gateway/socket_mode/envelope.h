// SPDX-License-Identifier: Apache-2.0
// Events on their way to apps in Socket Mode.
#pragma once

struct app;
struct gateway;
struct kept;
struct link;
struct stream;
struct stream_item;

// An event of a channel in which the link has a seat.
void envelope_offer(struct link *link, const struct stream *stream, const struct stream_item *item);
void envelope_ack(struct link *link, const char *id);
void envelopes_leave(struct app *app, const struct link *link); // the link ends
void envelopes_wake(struct app *app);                           // a link is ready
void envelope_on_timer(void *gateway);

void envelope_take(struct gateway *gateway, const struct kept *kept);
