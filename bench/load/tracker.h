// SPDX-License-Identifier: Apache-2.0
// Follows posts to the sockets that must get them. A post's text starts with "~<run>:<number>~", by
// which its frames are known; for each post one bit a member says who has it.
#ifndef TIDINGS_BENCH_TRACKER_H
#define TIDINGS_BENCH_TRACKER_H

#include "samples.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tracked_post {
    uint64_t due_ns;
    uint32_t received;
    bool acked; // frames of a refused post are not missed
};

struct tracker {
    uint32_t run;
    size_t members; // that must get each post
    size_t words;   // of 64 bits for a post's members
    struct tracked_post *posts;
    uint64_t *seen;
    size_t count, room;
    uint64_t warm_until_ns; // latencies of what was due before are not kept
    struct samples latency;
    uint64_t frames, bytes, doubled, complete;
};

void tracker_init(struct tracker *tracker, size_t members);
void tracker_done(struct tracker *tracker);

// Adds the next post and writes its text of `bytes` characters.
void tracker_add(struct tracker *tracker, uint64_t due_ns, char *ret_text, size_t bytes);

// The n-th post was acked.
void tracker_ack(struct tracker *tracker, size_t n);

// Counts a frame that came to a member's socket; false: it is none of this run's posts.
bool tracker_frame(struct tracker *tracker, size_t member, const char *text, size_t len,
                   uint64_t now_ns);

// Frames of acked posts that have not come.
uint64_t tracker_lost(const struct tracker *tracker);

#endif
