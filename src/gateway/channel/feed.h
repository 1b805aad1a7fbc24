// SPDX-License-Identifier: Apache-2.0
// One channel's events on this gateway: sent in the order of seq, each once. Sends nothing by
// itself: the hooks decide what happens to an event. Uses no connection, Postgres or Redis.
#pragma once

#include "base/buffer.h"
#include "base/hash.h"
#include "base/list.h"
#include "events/event.h"

struct connection;
struct feed;
struct feed_item;
struct gateway;

// A connection that receives a channel's events.
struct feed_subscriber {
    struct connection *connection;
    uint32_t subscription; // index in connection->subscriptions
    int64_t from_seq;      // receives only later events
};

// A post that was acked to a socket here: that socket does not receive its event.
struct own_post {
    struct list link;
    int64_t seq;
    char origin[EVENT_ID_SIZE];
};

// An event that arrived early and waits for its turn.
struct held {
    struct list link;
    struct event *event;
};

struct feed {
    UT_hash_handle hh;
    struct gateway *gateway;
    char channel_id[EVENT_ID_SIZE];
    char workspace_id[EVENT_ID_SIZE];
    int64_t sent_seq;       // all events up to it were sent
    int64_t known_seq;      // the highest seq known to exist
    int64_t membership_seq; // of the last join or leave sent
    int64_t covered_seq;    // the last watermark certainly covers all up to it
    int64_t watermark_seq;  // the next watermark waits until this was sent; 0: it does not wait
    struct feed_subscriber *subscribers;
    uint32_t subscriber_count;
    uint32_t resumable_count; // subscribers with a position
    uint32_t subscriber_capacity;
    int64_t sent_ts;        // no message up to it is missing before sent_seq; 0: unknown
    struct list held_marks; // see held_marks.c
    struct list held;       // by seq
    int held_count;
    struct list own_posts;
    struct list focuses;  // see focus.c
    struct list gap_link; // in gateway->gaps.list while events are missing
    int64_t waiting_ms;   // when the gap last shrank
    int64_t asked_ms;     // when the last page was requested
    int gap_reads;        // pages requested for this gap
    bool gap_asked;       // a page is being read
    bool is_unconfirmed;  // events from before its topic was subscribed may be missing
    bool members_asked;
    bool members_due;       // the members must be checked again soon
    bool members_unknown;   // a leave may have been missed: suspended until Postgres answers
    int64_t changed_ms;     // when the last delete or edit was sent
    bool unread_frames_due; // unread counts must be sent again
    int64_t generation;     // of the channel's strategy, last known; -1: unknown
    int64_t empty_since_ms; // 0 while there are subscribers
};

// An event as it is sent.
struct feed_item {
    int64_t seq;
    int64_t event_ts;
    int64_t ts; // of a post
    enum event_kind kind;
    enum channel_type channel_type;
    const char *type; // of the frame
    const char *user_id;
    const char *origin;
    const char *frame;
    size_t frame_length;
};

// What a feed calls: gateway->feed_hooks. See delivery.c.
struct feed_hooks {
    void (*begin)(struct feed *feed);                               // a new feed
    void (*end)(struct feed *feed);                                 // about to be freed
    void (*event)(struct feed *feed, const struct feed_item *item); // the next in order
    void (*skipped)(struct feed *feed, int64_t to_seq); // (sent_seq, to_seq] will not be sent
    void (*sent)(struct feed *feed);                    // all up to sent_seq was sent or skipped
    void (*gap)(struct feed *feed);       // known_seq is above sent_seq; may be called again
    void (*suspended)(struct feed *feed); // see feed_suspend()
    void (*rewound)(struct feed *feed);   // sent_seq went back
};

struct feed *feed_find(struct gateway *gateway, const char *channel_id);
// The channel's feed; a new one starts after `seq`. NULL: out of memory.
struct feed *feed_open(struct gateway *gateway, const char *workspace_id, const char *channel_id,
                       int64_t seq);
void feed_free(struct feed *feed);
// Takes an event from its topic, in any order, and references it if it must wait.
void feed_offer(struct feed *feed, struct event *event);
void feed_note_head(struct feed *feed, int64_t seq); // event `seq` exists
// Sends the event that is next in order.
void feed_send(struct feed *feed, const struct feed_item *item);
void feed_release(struct feed *feed); // sends held events that are next in order
// Goes back to `seq`: later events are read again for a connection that subscribes next. Present
// subscribers do not receive them again; joins and leaves among them have no effect.
void feed_rewind(struct feed *feed, int64_t seq);
// Gives up on the events up to `to_seq`, then suspends the feed: a leave may be among them.
void feed_skip(struct feed *feed, int64_t to_seq);
// Sends nothing until Postgres has confirmed the members; feed_continue() then resumes.
void feed_suspend(struct feed *feed);
void feed_continue(struct feed *feed);
// Appends a frame of type `gap`.
void feed_gap_write(const char *channel_id, int64_t from_seq, int64_t to_seq, struct buffer *out);
