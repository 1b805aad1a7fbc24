// SPDX-License-Identifier: Apache-2.0
// One channel's events on this gateway, sent in order to the connections of its members.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/list.h"
#include "events/event.h"

struct connection;
struct gateway;
struct user;

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
    uint32_t sse_count; // event streams among them
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

struct stream *stream_find(struct gateway *gateway, const char *channel_id);
// The stream of a channel; a new one (subscribed to) begins after `seq`. NULL without memory.
struct stream *stream_follow(struct gateway *gateway, const char *workspace_id,
                             const char *channel_id, int64_t seq);
void stream_free(struct stream *stream);
// Gives a connection that has none a seat; it gets the events after `from_seq`. -ERROR_MEMORY.
NODISCARD int stream_seat(struct stream *stream, struct connection *c, int64_t from_seq);
// The same for a connection whose list of channels was read when the channel's head was `seq`.
NODISCARD int stream_enter(struct stream *stream, struct connection *c, int64_t seq,
                           int64_t from_seq);
// Seats all connections of a user. If one of them had no seat, all are told of the channel.
void stream_seat_user(struct stream *stream, struct user *user, int64_t from_seq);
// After the user's leave at `seq`: unseats their connections, except those whose list of channels
// was read after it.
void stream_unseat_user(struct stream *stream, const struct user *user, int64_t seq);
void stream_unseat_all(struct connection *c); // gives up all seats of a connection
bool stream_has(const struct stream *stream, const struct connection *c);
bool stream_has_user(const struct stream *stream, const struct user *user); // all its connections
// Goes back to `seq`, so that a connection seated next gets later events, which are read again.
// Those that are seated already do not get them twice, and joins and leaves among them have no
// effect.
void stream_rewind(struct stream *stream, int64_t seq);
void stream_offer(struct stream *stream,
                  struct event *event); // an event of its topic, in any order

struct stream_item {
    int64_t seq;
    int64_t event_ts;
    int64_t ts; // of a post
    enum event_kind kind;
    const char *user_id;
    const char *origin;
    const char *frame;
    size_t frame_length;
};
// Sends the event that is next in turn.
void stream_send(struct stream *stream, const struct stream_item *item);
void stream_release(struct stream *stream); // held events whose turn has come
void stream_own_post(struct gateway *gateway, const char *channel_id, int64_t seq,
                     const char *origin);
// Tells of a gap that could not be filled. Later events wait until Postgres has told who is still a
// member; then stream_go_on() sends them.
void stream_skip(struct stream *stream, int64_t to_seq);
void stream_go_on(struct stream *stream);
void stream_gap_write(const char *channel_id, int64_t from_seq, int64_t to_seq, struct buffer *out);
