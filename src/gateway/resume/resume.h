// SPDX-License-Identifier: Apache-2.0
// Goes on where somebody stopped: what happened in between is read from Postgres, channel by
// channel, for them alone. It is read for a connection, whose subscribers get what happens
// meanwhile when their channel has been told (backlog.c), or for one call of events.sync, which
// ends where its snapshot does.
//
// Each event of the backlog has a place that says how far its sending has got, so whoever breaks
// off in the middle goes on from there (struct progress). What they continue is the first *pass*:
// it ends when all that happened before the backlog was first begun was sent. The channels that
// were done by then have a second pass, over what happened since.
#pragma once

#include "../position.h"

#include "base/actor.h"
#include "events/event.h"
#include "store/store.h"

struct gateway;
struct resume;
struct resume_ops;

// All channels of a user, for resume_params().
extern const struct statement resume_statement;
enum {
    RESUME_XID,
    RESUME_SECONDS,
    RESUME_CHANNEL, // NULL: the row has none
    RESUME_SEQ,
    RESUME_LAST_TS,
    RESUME_ACTIVE,
    RESUME_MEMBER_SEQ,
    RESUME_IS_SECOND,
    RESUME_CHANGED,
    RESUME_THREADS,
};

// Adds its parameters behind the user's id.
void resume_params(struct gateway *gateway, struct place *place, struct params *params);

// The moment of the answer, as the user's position.
struct position resume_now(struct gateway *gateway, const char *user_id,
                           const struct result *result);

// Whether the place is of no use any more.
bool resume_is_too_old(const struct gateway *gateway, const struct place *place,
                       const struct result *result);

// A backlog without channels yet: resume_add() adds each row of the answer that is one. Actor,
// place and ops stay the caller's, and must outlive it. NULL: no memory.
struct resume *resume_new(struct gateway *gateway, const struct actor *actor, struct place *place,
                          const struct resume_ops *ops, void *arg, const struct result *result);
void resume_add(struct resume *resume, const struct result *result, int row, bool has_events);
// To be called when all are added.
void resume_added(struct resume *resume);
void resume_free(struct resume *resume); // takes NULL; ops are not called any more

// Reads on, when there is something left to read and whoever is told is ready.
void resume_go_on(struct resume *resume);

// The user came (back) into the channel. True while they are still being told what was before: then
// of the join in its turn, too, and their subscriber waits for that.
bool resume_joined(struct resume *resume, const char *channel_id);

// Whether there is still something to be sent of the channel of an event about what the user has
// read. The event need not be sent: what it tells comes then, too.
bool resume_awaits(struct resume *resume, const struct event *event);
