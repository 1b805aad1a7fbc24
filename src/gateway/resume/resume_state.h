// SPDX-License-Identifier: Apache-2.0
// The state of reading a backlog: what is left, and what was requested.
#pragma once

#include "../position.h"
#include "resume_ops.h"

#include "base/actor.h"
#include "base/buffer.h"
#include "events/event.h"
#include "store/store.h"

struct gateway;

enum behind_stage { BEHIND_EVENTS, BEHIND_STATE, BEHIND_THREADS, BEHIND_DONE };

// A channel that is behind. It is sent in the order of the stages.
struct behind {
    char channel_id[EVENT_ID_SIZE];
    enum behind_stage stage;
    int64_t at_seq;        // all events up to it were sent; -1: unknown
    int64_t to_seq;        // last event to send: the leave, or a call's end; INT64_MAX: no end
    int64_t seen_seq;      // the head when reading began, or the end of a call's pass
    int64_t earlier_seq;   // an earlier connection or call sent all up to it; 0: none did
    int64_t thread_ts;     // all threads up to it were sent
    int64_t asked_end_seq; // end of the requested page
    bool is_member;        // the user has not left
    bool asked_subscribed; // the connection was subscribed when the page was requested
    bool is_away;          // read past a leave of the user, and not yet to the next join
    bool state_due;        // the read state must be sent
    bool threads_due;      // threads were followed or read
};

struct resume {
    uint32_t tag;
    struct gateway *gateway;
    const struct actor *actor;
    struct place *place;
    const struct resume_ops *ops;
    void *arg; // NULL: cancelled
    struct behind *behind;
    int count;
    int next;     // index of the channel being sent
    int pass_end; // index at which the current pass ends
    bool is_last_pass;
    int batch;           // channels per query for where they begin
    struct position now; // when this backlog was begun
    int page;            // events per read: about as many as there is room for
    int asked;           // channels in the read in flight
    int asked_page;      // its maximum of events per channel
    bool is_asked;
    bool created_sent;                      // all new channels were sent
    void (*advance)(struct resume *resume); // resume_advance(); call it after handling an answer
};

// Updates the progress: all of `part` up to `number` is sent. Frames sent after this carry it.
void resume_progress_set(struct resume *resume, const char *channel_id, enum progress_part part,
                         int64_t number);
// Unless the buffer failed.
void resume_send(struct resume *resume, const char *type, const struct buffer *frame);
void resume_send_own(struct resume *resume, const char *type, const struct buffer *frame);
// Call them with each request to Postgres, and in its callback. False: the backlog was cancelled
// and is freed, or the query failed, which ops->fail has handled.
void resume_ask(struct resume *resume);
NODISCARD bool resume_answer(struct resume *resume, const struct store_outcome *outcome);
void resume_done(struct resume *resume); // frees it; no request may be in flight
