// SPDX-License-Identifier: Apache-2.0
// The client that a backlog is sent to, as callbacks.
#pragma once

#include "base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

struct feed;

// `arg` as passed to resume_new().
struct resume_ops {
    bool (*is_ready)(void *arg);             // whether to read more
    bool (*has_room)(void *arg, int frames); // for so many frames that were read
    // `type` is the type of the event.
    void (*send)(void *arg, const char *type, const struct buffer *frame);
    void (*send_own)(void *arg, const char *type, const struct buffer *frame); // unknown to Slack
    void (*gap)(void *arg, const char *channel_id, int64_t from_seq, int64_t to_seq);
    // The client's subscriber in the feed; NULL: not subscribed. May be NULL: there are none.
    struct feed_subscriber *(*subscriber)(void *arg, const struct feed *feed);
    // All was sent or, for a call, one pass. The resume does nothing after this.
    void (*over)(void *arg);
    void (*fail)(void *arg); // Postgres did not answer; the resume does nothing after this
    // A call: reads by a snapshot, in one pass that ends exactly at its position. Of a channel that
    // the user left it sends only the leave. There are no subscribers.
    bool is_call;
    int first_batch; // number of channels in the first query for where channels begin
    int first_page;  // number of events in the first read
};
