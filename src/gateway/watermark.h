// SPDX-License-Identifier: Apache-2.0
// The watermark: the position up to which all event streams and native sockets of this gateway
// have been sent everything.
#pragma once

#include "position.h"

#include "base/cleanup.h"

#include <stdbool.h>

struct gateway;
struct loop_timer;
struct feed;

struct watermark {
    struct position position; // xid 0: none yet
    struct position next;     // the one waited for; xid 0: none
    struct position notes[2]; // earlier ones; the first is the older
    int64_t noted_ms;         // when the second one was taken
    uint32_t serial;          // number of the query that gave `position`
    uint32_t next_serial;     // number of the last query
    int waiting;              // feeds that have not sent enough for `next`
    bool is_asked;            // a query is in progress
    bool is_whole;            // the last query covered all feeds that are here now
    int64_t asked_ms;
    struct loop_timer *timer;
    char text[POSITION_SIZE]; // `position` as the id of events; no owner, since all share packets
};

NODISCARD int watermark_new(struct gateway *gateway);
void watermark_free(struct gateway *gateway);    // may be called without watermark_new()
void watermark_request(struct gateway *gateway); // the last query does not cover a connection
void watermark_passed(struct feed *feed);        // the feed has sent what the watermark waits for
// The last connection with a position is gone: starts with new notes.
void watermark_forget(struct gateway *gateway);
// Postgres may assign ids above `xid` again (a new era).
void watermark_lower(struct gateway *gateway, int64_t xid);
