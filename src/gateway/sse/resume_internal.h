// SPDX-License-Identifier: Apache-2.0
// The parts of resuming an event stream: resume.c goes through the backlog, resume_events.c sends
// the events of a channel, resume_others.c what is no event of a channel.
#pragma once

#include "../position.h"
#include "resume.h"

struct gateway;

enum behind_stage { BEHIND_EVENTS, BEHIND_STATE, BEHIND_THREADS, BEHIND_DONE };

// A channel of which something is to be told, in the order of the stages.
struct behind {
    char channel_id[EVENT_ID_SIZE];
    enum behind_stage stage;
    int64_t at_seq;    // all events up to it were sent; -1: not known yet
    int64_t to_seq;    // of the leave, when the user is no member any more; else INT64_MAX
    int64_t seen_seq;  // the head when the connection was opened; 0: no member any more
    int64_t told_seq;  // up to which an earlier connection sent them; 0: none did
    int64_t thread_ts; // all threads up to it were told
    bool is_away;      // read up to a leave of the user's, and not yet to the next join
    bool state_due;    // the read state is to be told
    bool threads_due;  // threads were followed or read
};

struct resume {
    struct connection *connection; // NULL once it is gone
    struct gateway *gateway;
    struct behind *behind;
    int count;
    int next;     // the one being told
    int pass_end; // where the pass under way ends
    bool is_last_pass;
    int batch;           // of how many channels at once it is asked where they begin
    struct position now; // when the connection was opened
    int page; // how many events are asked for at once: about as many as there is room for
    bool is_asked;
    bool asked_seated;     // when the page was asked for, the connection sat in its stream
    int64_t asked_end_seq; // up to where it was to go
};

// resume.c
// Frames of the present need some room, too.
bool resume_has_room(const struct connection *c);
// The id of the events sent from now on tells that all of `part` up to `number` was.
void resume_note(struct connection *c, const char *channel_id, enum progress_part part,
                 int64_t number);
// To be called before a question to Postgres, and with its answer: the connection to go on with, or
// NULL. It is NULL, too, when the question failed, for then the connection ends.
void resume_ask(struct resume *resume);
struct connection *resume_answer(struct resume *resume, const struct store_outcome *outcome);
// The pass is over: everything before it was sent.
void resume_pass_end(struct connection *c);

// resume_events.c
// Asks for what comes next. False when there is nothing left.
bool resume_events_ask(struct connection *c, struct behind *behind);

// resume_others.c
void resume_state_ask(struct resume *resume, const struct behind *behind);
void resume_threads_ask(struct resume *resume, const struct behind *behind);
void resume_created_ask(struct resume *resume);
