// SPDX-License-Identifier: Apache-2.0
// How far all event streams and native sockets of this gateway have got.
#pragma once

#include "position.h"

#include "base/cleanup.h"

#include <stdbool.h>

struct gateway;
struct loop_timer;
struct feed;

struct watermark {
    struct position position; // xid 0: there is none yet
    struct position next;     // the one waited for; else xid 0
    struct position notes[2]; // earlier ones; the first is the older
    uint32_t serial;          // number of the question that gave `position`
    uint32_t next_serial;     // number of the last question
    int waiting;              // feeds that have not sent enough for `next`
    bool is_asked;            // a question to Postgres is under way
    bool is_whole;            // the last question was about all feeds that are here now
    int64_t asked_ms;
    struct loop_timer *timer;
    char text[POSITION_SIZE]; // the position as the id of events: nobody's, for all share the frame
};

NODISCARD int watermark_new(struct gateway *gateway);
void watermark_free(struct gateway *gateway); // does nothing if there is none
void watermark_want(struct gateway *gateway); // the last one does not cover some connection
void watermark_passed(struct feed *feed);     // the feed sent what the watermark waits for
void watermark_forget(
    struct gateway *gateway); // nobody is left who goes by it: its notes begin afresh
void watermark_lower(struct gateway *gateway, int64_t xid); // Postgres may give ids above it again
