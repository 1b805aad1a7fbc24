// SPDX-License-Identifier: Apache-2.0
// Who is told of a backlog.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct feed;

// `arg` is what was given to resume_new().
struct resume_ops {
    bool (*is_ready)(void *arg);             // whether to go on reading
    bool (*has_room)(void *arg, int frames); // for so many frames that are there to be sent
    void (*send)(void *arg, const char *frame, size_t length);
    void (*send_own)(void *arg, const char *frame, size_t length); // a frame that Slack has not
    void (*gap)(void *arg, const char *channel_id, int64_t from_seq, int64_t to_seq);
    // Its subscriber in the feed; NULL: it has none.
    struct feed_subscriber *(*subscriber)(void *arg, const struct feed *feed);
    void (*over)(
        void *arg); // all is told, or, of a call, one pass; the resume does nothing any more
    void (*fail)(void *arg); // Postgres did not answer; the resume does nothing any more
    // All that is told is told by a snapshot: each pass ends exactly where it says, and there is
    // one only. Of a channel that the user left: only that they did. Goes with no subscribers.
    bool is_call;
    int first_batch; // of how many channels at first it is asked where they begin
    int first_page;  // how many events are read at first
};
