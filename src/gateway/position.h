// SPDX-License-Identifier: Apache-2.0
// Where a feed of events can be resumed: a moment of Postgres such that everything committed
// before it was sent, and how far a resumed feed has got since. In text it is the id of events
// and the position of sockets, "e1.<xid>.<heard xid>.<seconds>.<era>", opaque to clients, good on
// every instance. While a backlog is sent, the progress is appended,
// ".<xid>.<seconds>.<era>.<channel>.<part>.<number>". Behind all that may stand whose position it
// is. See docs/decisions/2026-11-21-event-stream-position.md.
#pragma once

#include "base/cleanup.h"
#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POSITION_SIZE = 240 };

struct position {
    int64_t xid;       // transactions below it: their events of channels were sent
    int64_t heard_xid; // below it: also marks, joins and leaves were heard
    int64_t seconds;   // Postgres' clock then
    int64_t era;       // in which this is so: see store.h
    int64_t owner;     // position_owner() of whom it was given to; 0: it is the same for all
};

// A backlog is sent channel by channel, in the order of their ids; of each channel first its
// events, then the read state, then the threads. Channels that were made come last.
enum progress_part { PROGRESS_EVENTS, PROGRESS_THREADS, PROGRESS_CREATED, PROGRESS_PART_MAX };

struct progress {
    struct position until;    // what was sent of the channels before this one; xid 0: none
    char channel_id[ID_SIZE]; // "": none yet; of PROGRESS_CREATED: the last one told
    enum progress_part part;
    int64_t
        number; // the last seq; the ts of the last thread, 0: the read state; the xid of a creation
};

// How far somebody was told: the position, and the text of it that clients are given.
struct place {
    struct position since;    // all before it was told
    struct progress progress; // of what came since
    char text[POSITION_SIZE];
};

// What stands for a user in positions.
int64_t position_owner(const char *user_id);
// Whether it was given to somebody else.
bool position_is_of_another(const struct position *position, const char *user_id);

// Prints place->text anew.
void place_print(struct place *place);

// Prints the position, and the progress if there is one, to POSITION_SIZE bytes.
void position_print(const struct position *position, const struct progress *progress,
                    char *ret_text);
// What position_print() prints, perhaps with more numbers. A progress that makes no sense is
// dropped: the backlog is then sent from its beginning. A position that a later release prints in
// another version ("e2.…") is read as one too old to be resumed from. -ERROR_INVALID_ARGUMENTS.
NODISCARD int position_parse(const char *text, size_t length, struct position *ret_position,
                             struct progress *ret_progress);
