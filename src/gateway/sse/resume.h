// SPDX-License-Identifier: Apache-2.0
// An event stream that goes on where an earlier one ended: what happened in between is read from
// Postgres, channel by channel, for this connection alone; meanwhile what happens now waits in
// Postgres, too, until it is its turn.
//
// Each event of the backlog has an id that says how far its sending has got, so a connection that
// breaks in the middle goes on from there (struct progress). What such a connection continues is
// the first *pass*: it ends when all that happened before the backlog's first connection was sent.
// The channels that were done by then have a second pass, over what happened since.
#pragma once

#include "events/event.h"
#include "store/store.h"

struct connection;
struct stream;

extern const struct statement resume_statement;

// Adds its parameters behind the user's id.
void resume_params(struct connection *c, struct params *params);

// Seats the connection in its channels by the answer. -ERROR_MEMORY.
NODISCARD int resume_begin(struct connection *c, const struct result *result);

// Whether the position that the client named is of no use any more.
bool resume_is_too_old(const struct connection *c, const struct result *result);

// Reads on, when there is something left to read and room to send it.
void resume_go_on(struct connection *c);

// The user came (back) into the channel of `stream`. True while the connection is still being told
// what was before: then of the join in its turn, too, and its seat waits for that.
bool resume_joined(struct connection *c, const struct stream *stream);

// Whether the connection is still to be sent what it missed in the channel of an event about what
// its user has read. The event need not be sent: what it tells comes then, too.
bool resume_awaits(struct connection *c, const struct event *event);

void resume_free(struct connection *c);
