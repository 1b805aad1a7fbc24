// SPDX-License-Identifier: Apache-2.0
// One channel's events on this gateway, each sent once and in order. What is done with them, and
// who gets them, is up to the hooks: this knows no connection, no Postgres and no Redis.
#pragma once

#include "base/buffer.h"
#include "base/hash.h"
#include "base/list.h"
#include "events/event.h"

struct connection;
struct gateway;
struct feed;
struct feed_item;

// One connection's place in a feed: it gets the channel's events.
struct feed_subscriber {
    struct connection *connection;
    uint32_t subscription; // index of this subscriber's entry in connection->follows
    int64_t from_seq;      // the connection gets only later events
};

// A post from a socket here that was acked: the socket does not get its event.
struct own_post {
    struct list link;
    int64_t seq;
    char origin[EVENT_ID_SIZE];
};

// An event that arrived before an earlier one, and waits for its turn.
struct held {
    struct list link;
    struct event *event;
};

// One channel's events on this gateway.
struct feed {
    UT_hash_handle hh;
    struct gateway *gateway;
    char channel_id[EVENT_ID_SIZE];
    char workspace_id[EVENT_ID_SIZE];
    int64_t sent_seq;       // all up to it was sent
    int64_t known_seq;      // the highest seq heard of
    int64_t membership_seq; // of the last join or leave sent
    int64_t watermark_seq;  // the next watermark waits until this was sent; 0: it does not wait
    struct feed_subscriber *subscribers;
    uint32_t subscriber_count;
    uint32_t resumable_count; // those among them that go by the watermark
    uint32_t subscriber_capacity;
    int64_t sent_ts;        // no message up to it is missing before sent_seq; 0: not known
    struct list held_marks; // see held_marks.c
    struct list held;       // by seq
    int held_count;
    struct list own_posts;
    struct list focuses;  // see focus.c
    struct list gap_link; // in gateway->gaps.list while something is missing
    int64_t waiting_ms;   // when the gap last got smaller
    int64_t asked_ms;     // when the last page was asked for
    int gap_reads;        // pages asked for this gap
    bool gap_asked;       // a page is being read
    bool is_unconfirmed;  // its topic may not have been subscribed when its first events came
    bool members_asked;
    bool members_due;       // members are to be asked for again, soon
    bool members_unknown;   // somebody may have left: nothing is sent until Postgres has told
    int64_t changed_ms;     // when the last delete or edit was sent
    bool unread_frames_due; // unread counts have to be told again
    int64_t generation;     // of the channel's strategy, as last told; -1: not known yet
    int64_t empty_since_ms; // 0 while there are subscribers
};

// An event as it is sent.
struct feed_item {
    int64_t seq;
    int64_t event_ts;
    int64_t ts; // of a post
    enum event_kind kind;
    enum channel_type channel_type;
    const char *user_id;
    const char *origin;
    const char *frame;
    size_t frame_length;
};

// What follows in other files, which gateway->feed_hooks leads to.
struct feed_hooks {
    void (*begin)(struct feed *feed);                               // it is new
    void (*end)(struct feed *feed);                                 // it is about to be freed
    void (*event)(struct feed *feed, const struct feed_item *item); // its turn has come
    // The events after sent_seq and up to `to_seq` will not come.
    void (*skipped)(struct feed *feed, int64_t to_seq);
    void (*sent)(struct feed *feed);      // all up to sent_seq was sent, or told of as a gap
    void (*gap)(struct feed *feed);       // known_seq is above sent_seq; also called again
    void (*suspended)(struct feed *feed); // somebody may have left unnoticed; see feed_suspend()
    void (*rewound)(struct feed *feed);   // sent_seq is lower than it was
};

struct feed *feed_find(struct gateway *gateway, const char *channel_id);
// The feed of a channel; a new one begins after `seq`. NULL without memory.
struct feed *feed_open(struct gateway *gateway, const char *workspace_id, const char *channel_id,
                       int64_t seq);
void feed_free(struct feed *feed);
// An event of its topic, in any order.
void feed_offer(struct feed *feed, struct event *event);
void feed_note_head(struct feed *feed, int64_t seq); // there is an event `seq`
// Sends the event that is next in turn.
void feed_send(struct feed *feed, const struct feed_item *item);
void feed_release(struct feed *feed); // held events whose turn has come
// Goes back to `seq`, so that a connection subscribed next gets later events, which are read again.
// Those that are subscribed already do not get them twice, and joins and leaves among them have no
// effect.
void feed_rewind(struct feed *feed, int64_t seq);
// Tells of a gap that could not be filled, and doubts.
void feed_skip(struct feed *feed, int64_t to_seq);
// Nothing is sent until Postgres has told who is still a member; feed_continue() then sends it.
void feed_suspend(struct feed *feed);
void feed_continue(struct feed *feed);
void feed_gap_write(const char *channel_id, int64_t from_seq, int64_t to_seq, struct buffer *out);
