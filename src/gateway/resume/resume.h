// SPDX-License-Identifier: Apache-2.0
// Resumes from a position: reads what a client missed from Postgres, channel by channel, for this
// client alone. The client is a connection, whose subscriptions deliver new events once their
// channel's part is sent (backlog.c), or a call of events.sync, which ends at its snapshot.
//
// Each event of a backlog carries its progress (struct progress), so a client that breaks off in
// the middle continues there. Continuing a backlog is the first *pass*: it ends when everything
// from before the backlog's first start was sent. The channels that were already done get a second
// pass, over what happened since.
#pragma once

#include "../position.h"

#include "base/actor.h"
#include "events/event.h"
#include "store/store.h"

struct gateway;
struct gateway_covered;
struct resume;
struct resume_ops;

// All channels of a user; parameters: the user's id and resume_params().
extern const struct statement resume_statement;
enum {
    RESUME_XID,
    RESUME_SECONDS,
    RESUME_CHANNEL, // NULL: the user has no channels
    RESUME_SEQ,
    RESUME_LAST_TS,
    RESUME_ACTIVE,
    RESUME_MEMBER_SEQ,
    RESUME_IS_SECOND,
    RESUME_CHANGED,
    RESUME_THREADS,
};

// What the place covers. Drops a progress of another era.
void resume_covered(const struct gateway *gateway, struct place *place,
                    struct gateway_covered *ret_covered);

// Appends the parameters of resume_statement after the user's id; see resume_covered().
void resume_params(struct gateway *gateway, struct place *place, struct params *params);

// The position of the result's snapshot, owned by the user.
struct position resume_now(struct gateway *gateway, const char *user_id,
                           const struct result *result);

// Whether the place is older than resume_max_s, or no longer valid in the current era.
bool resume_is_too_old(const struct gateway *gateway, const struct place *place,
                       const struct result *result);

// Makes a backlog without channels; add each row that has one by resume_add(). Borrows actor, place
// and ops, which must outlive it. NULL: out of memory.
struct resume *resume_new(struct gateway *gateway, const struct actor *actor, struct place *place,
                          const struct resume_ops *ops, void *arg, const struct result *result);
void resume_add(struct resume *resume, const struct result *result, int row, bool has_events);
// Call it after the last resume_add().
void resume_added(struct resume *resume);
void resume_free(struct resume *resume); // takes NULL; ops are not called any more

// Reads the next part if the client is ready. Does nothing for NULL, or while a read is in flight.
void resume_advance(struct resume *resume);

// The user joined the channel, perhaps again. True while the backlog still includes the channel's
// events: the join is sent in its turn, and the subscription waits until then.
bool resume_joined(struct resume *resume, const char *channel_id);

// `event` is a mark, or about a thread. True while the backlog still includes its channel's events:
// the event need not be sent, since the backlog will send the same state after them.
bool resume_awaits(struct resume *resume, const struct event *event);
