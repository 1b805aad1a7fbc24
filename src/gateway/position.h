// SPDX-License-Identifier: Apache-2.0
// Where a client continues: a moment in Postgres' history up to which everything committed was
// sent, and the progress of a backlog since. As text, "e1.<xid>.<heard xid>.<seconds>.<era>", it is
// the `id` of events and the position of sockets: opaque to clients, valid on every instance. While
// a backlog is sent, the progress is appended: ".<xid>.<seconds>.<era>.<channel>.<part>.<number>".
// The owner may follow at the end. Channels that were sent further come first: ".0.<count>", then
// ".<channel>.<seq>" of each. See docs/decisions/2026-11-21-event-stream-position.md.
#pragma once

#include "base/cleanup.h"
#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POSITION_SIZE = 240, PLACE_SIZE = 736, BEYOND_MAX = 8 };

struct position {
    int64_t xid;          // channel events of all transactions below it were sent
    int64_t received_xid; // below it, marks, joins and leaves were received, too
    int64_t seconds;      // Postgres' clock at that moment
    int64_t era;          // that of both xids: see store.h
    int64_t owner;        // position_owner() of its user; 0: the same for all
};

// A backlog is sent channel by channel, in the order of their ids: of each channel its events, then
// the read state, then the threads. New channels come last.
enum progress_part { PROGRESS_EVENTS, PROGRESS_THREADS, PROGRESS_CREATED, PROGRESS_PART_MAX };

struct progress {
    struct position until;    // channels before this one were sent up to here; xid 0: no progress
    char channel_id[ID_SIZE]; // "": none yet; in PROGRESS_CREATED the last new channel sent
    enum progress_part part;
    // The last seq; the ts of the last thread, or 0 for the read state; the xid of a creation.
    int64_t number;
};

// Channels that were sent further than the position says.
struct beyond {
    int count;
    struct {
        char channel_id[ID_SIZE];
        int64_t seq; // all events up to it were sent
    } channels[BEYOND_MAX];
};

// How much a client has been sent, and the same as text for clients, without what is beyond.
struct place {
    struct position since;    // all before it was sent
    struct progress progress; // of the backlog since then
    struct beyond beyond;
    char text[POSITION_SIZE];
};

// A number that stands for a user in positions; never 0.
int64_t position_owner(const char *user_id);
// Whether it belongs to another user.
bool position_is_of_another(const struct position *position, const char *user_id);

// The seq in `beyond`; 0: the channel is not there.
int64_t beyond_seq(const struct beyond *beyond, const char *channel_id);
// False: it is full.
bool beyond_add(struct beyond *beyond, const char *channel_id, int64_t seq);

// Drops the channels beyond that the progress has reached.
void place_drop_reached(struct place *place);
// Updates place->text.
void place_print(struct place *place);
// Prints all of it, to PLACE_SIZE bytes.
void place_print_all(const struct place *place, char *ret_text);

// Prints the position, and the progress if it is not NULL and has begun, to POSITION_SIZE bytes.
void position_print(const struct position *position, const struct progress *progress,
                    char *ret_text);
// Reads the output of place_print_all(), but not text; further numbers are ignored. An invalid
// progress is dropped: the backlog is then sent from its beginning. A later release's version
// ("e2.…") is read as a position too old to resume from. -ERROR_INVALID_ARGUMENTS.
NODISCARD int place_parse(const char *text, size_t length, struct place *ret_place);
