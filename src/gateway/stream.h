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
struct stream;
struct stream_item;

// One connection's place in a stream: it gets the channel's events.
struct seat {
    struct connection *connection;
    uint32_t follow;  // index of this seat's entry in connection->follows
    int64_t from_seq; // the connection gets only later events
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
struct stream {
    UT_hash_handle hh;
    struct gateway *gateway;
    char channel_id[EVENT_ID_SIZE];
    char workspace_id[EVENT_ID_SIZE];
    int64_t sent_seq;       // all up to it was sent
    int64_t known_seq;      // the highest seq heard of
    int64_t membership_seq; // of the last join or leave sent
    int64_t watermark_seq;  // the next watermark waits until this was sent; 0: it does not wait
    struct seat *seats;
    uint32_t seat_count;
    uint32_t resumable_count; // those among them that go by the watermark
    uint32_t seat_capacity;
    int64_t sent_ts;        // no message up to it is missing before sent_seq; 0: not known
    struct list held_marks; // see held_marks.c
    struct list held;       // by seq
    int held_count;
    struct list own_posts;
    struct list focuses;   // see focus.c
    struct list hole_link; // in gateway->holes.list while something is missing
    int64_t waiting_ms;    // when the hole last got smaller
    int64_t asked_ms;      // when the last page was asked for
    int hole_reads;        // pages asked for this hole
    bool hole_asked;       // a page is being read
    bool is_young;         // its topic may not have been subscribed when its first events came
    bool members_asked;
    bool members_due;       // members are to be asked for again, soon
    bool members_unknown;   // somebody may have left: nothing is sent until Postgres has told
    int64_t changed_ms;     // when the last delete or edit was sent
    bool changed_missed;    // unread counts have to be told again
    int64_t generation;     // of the channel's strategy, as last told; -1: not known yet
    int64_t empty_since_ms; // 0 while there are seats
};

// An event as it is sent.
struct stream_item {
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

// What follows in other files, which gateway->stream_hooks leads to.
struct stream_hooks {
    void (*begin)(struct stream *stream);                                 // it is new
    void (*end)(struct stream *stream);                                   // it is about to be freed
    void (*event)(struct stream *stream, const struct stream_item *item); // its turn has come
    // The events after sent_seq and up to `to_seq` will not come.
    void (*gap)(struct stream *stream, int64_t to_seq);
    void (*sent)(struct stream *stream);    // all up to sent_seq was sent, or told of as a gap
    void (*hole)(struct stream *stream);    // known_seq is above sent_seq; also called again
    void (*doubt)(struct stream *stream);   // somebody may have left unnoticed; see stream_doubt()
    void (*rewound)(struct stream *stream); // sent_seq is lower than it was
};

struct stream *stream_find(struct gateway *gateway, const char *channel_id);
// The stream of a channel; a new one begins after `seq`. NULL without memory.
struct stream *stream_follow(struct gateway *gateway, const char *workspace_id,
                             const char *channel_id, int64_t seq);
void stream_free(struct stream *stream);
// An event of its topic, in any order.
void stream_offer(struct stream *stream, struct event *event);
void stream_heard(struct stream *stream, int64_t seq); // there is an event `seq`
// Sends the event that is next in turn.
void stream_send(struct stream *stream, const struct stream_item *item);
void stream_release(struct stream *stream); // held events whose turn has come
// Goes back to `seq`, so that a connection seated next gets later events, which are read again.
// Those that are seated already do not get them twice, and joins and leaves among them have no
// effect.
void stream_rewind(struct stream *stream, int64_t seq);
// Tells of a gap that could not be filled, and doubts.
void stream_skip(struct stream *stream, int64_t to_seq);
// Nothing is sent until Postgres has told who is still a member; stream_go_on() then sends it.
void stream_doubt(struct stream *stream);
void stream_go_on(struct stream *stream);
void stream_gap_write(const char *channel_id, int64_t from_seq, int64_t to_seq, struct buffer *out);
