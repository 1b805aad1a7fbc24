// SPDX-License-Identifier: Apache-2.0
// Fetches marks, and threads, that may have been missed.
//
// Events without a seq count as heard once they are older than HEARD_LAG_S and nothing was late.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct gateway;
struct params;

// SQL, for a row of unread_rows: whether anything was marked since the join.
#define MEMBER_IS_MARKED(m)                                                                        \
    "(" m ".seq <> " m ".member_seq OR " m ".epoch > 0 OR " m ".single_version > 0)"

struct marks {
    int64_t notes[2]; // 0 is the older one
    int64_t noted_ms; // when the newer one was taken
    bool any_held;    // see held_marks.c
    bool is_asked;
    bool missed;        // a sweep is due
    int64_t sweep_note; // of the sweep under way; 0: there is none, or its first part has failed
};

enum { HEARD_LAG_S = 5, USERS_SLICE = 500 };
void marks_note(struct gateway *gateway);       // all topics are subscribed
void marks_note_first(struct gateway *gateway); // before a connection's channels are read
// Topics were not subscribed for a while, or are not: reads what was missed.
void marks_sweep(struct gateway *gateway);
void marks_sweep_resumed(struct gateway *gateway); // those of users who were away
void marks_on_store_up(void *gateway);
// Parameters of a sweep: the users here, and the note since which changes are to be told.
void sweep_params(struct params *params, const struct gateway *gateway);
