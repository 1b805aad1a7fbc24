// SPDX-License-Identifier: Apache-2.0
// An event stream that goes on where an earlier one ended: what happened in between is read from
// Postgres, channel by channel, for this connection alone; meanwhile what happens now waits in
// Postgres, too, until it is its turn.
#pragma once

#include "gateway_internal.h"

extern const struct statement resume_statement;

// Adds its parameters behind the user's id.
void resume_params(const struct connection *c, struct params *params);

// Seats the connection in its channels by the answer. -ERROR_MEMORY.
NODISCARD int resume_begin(struct connection *c, const struct result *result);

// Whether the position that the client named is of no use any more.
bool resume_is_too_old(const struct connection *c, const struct result *result);

// Reads on, when there is something left to read and room to send it.
void resume_go_on(struct connection *c);

// The user came (back) into the channel of `stream`. True while the connection is still being told
// what was before: then of the join in its turn, too, and its seat waits for that.
bool resume_joined(struct connection *c, const struct stream *stream);
