// SPDX-License-Identifier: Apache-2.0
// How far the reading of a backlog has got: what is left, and what is being asked for.
#pragma once

#include "../position.h"
#include "resume_ops.h"

#include "base/actor.h"
#include "base/buffer.h"
#include "events/event.h"
#include "store/store.h"

struct gateway;

enum behind_stage { BEHIND_EVENTS, BEHIND_STATE, BEHIND_THREADS, BEHIND_DONE };

// A channel of which something is to be told, in the order of the stages.
struct behind {
    char channel_id[EVENT_ID_SIZE];
    enum behind_stage stage;
    int64_t at_seq;        // all events up to it were sent; -1: not known yet
    int64_t to_seq;        // of the leave, when the user is no member any more; else INT64_MAX
    int64_t seen_seq;      // the head when the reading began, or where its pass ends
    int64_t told_seq;      // up to which an earlier reader sent them; 0: none did
    int64_t thread_ts;     // all threads up to it were told
    int64_t asked_end_seq; // up to where the page asked for was to go
    bool is_member;        // the user has not left
    bool asked_subscribed; // when it was asked for, there was a subscriber
    bool is_away;          // read up to a leave of the user's, and not yet to the next join
    bool state_due;        // the read state is to be told
    bool threads_due;      // threads were followed or read
};

struct resume {
    uint32_t tag;
    struct gateway *gateway;
    const struct actor *actor;
    struct place *place;
    const struct resume_ops *ops;
    void *arg; // NULL once nobody is told any more
    struct behind *behind;
    int count;
    int next;     // the one being told
    int pass_end; // where the pass under way ends
    bool is_last_pass;
    int batch;           // of how many channels at once it is asked where they begin
    struct position now; // when it was begun
    int page;            // how many events are read at once: about as many as there is room for
    int asked;           // of how many channels a page is asked for
    int asked_page;      // of at most so many events
    bool is_asked;
    bool is_created_told;                 // all channels that were made were told of
    void (*go_on)(struct resume *resume); // to be called when an answer was dealt with
};

// The place of what is sent from now on tells that all of `part` up to `number` was.
void resume_note(struct resume *resume, const char *channel_id, enum progress_part part,
                 int64_t number);
void resume_send(struct resume *resume, const struct buffer *frame); // unless it failed
// To be called before a question to Postgres, and with its answer: false when there is nobody to go
// on for, or the question failed.
void resume_ask(struct resume *resume);
NODISCARD bool resume_answer(struct resume *resume, const struct store_outcome *outcome);
void resume_done(struct resume *resume); // frees it; nothing is asked for
