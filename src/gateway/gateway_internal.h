// SPDX-License-Identifier: Apache-2.0
// The inside of the gateway. What each file does:
//
//   gateway.c     creates, drains and frees the gateway; what happens every second, and at the end
//                 of each turn
//   connection.c  one connection, from takeover to close; outlet.c its queue of packet.c's packets
//   handshake.c   parses a socket's request head and makes the answer (pure)
//   ticket.c      turns a ticket or token into an actor and its channels, and says hello
//   receive.c     turns the client's bytes into messages (wslay)
//   inbound.c     handles these messages: posts, pings; focus.c channel_focus and channel_blur
//   people.c      users and workspaces that have connections here, and their topics
//   stream.c      sends a channel's events in order to the connections of its members
//   hole.c        fetches missing events; page.c reads them from Postgres
//   heads.c       compares channels' heads with what was sent, to notice missing events
//   members.c     checks who is in a channel, when joins and leaves may have been missed
//   marks.c       fetches marks that may have been missed; created.c new channels, likewise
//   held_marks.c  marks that came before their messages
//   changed.c     tells unread counts after a delete, an edit or a change of preferences
//   joined.c      frames for only the user who joined or left a channel
//   tokens.c      closes connections whose token is no longer valid
//   sse.c         opens event streams; sse_head.c parses their request (pure)
//   resume.c      reads back what an event stream missed: resume_events.c the events of a channel,
//                 resume_others.c what is none; position.c is where it continues
//   watermark.c   how far all event streams of this gateway have got
//   presence.c    tells Redis who is connected here; watch.c tells sockets about others' presence
//   ephemeral.c   frames that are stored nowhere: user_typing
//   link.c        connections of apps (Socket Mode)
//   envelope.c    the events that apps get; kept.c those of them that wait in Postgres
#pragma once

#include "base/hash.h"
#include "base/list.h"
#include "base/metrics.h"
#include "events/event.h"
#include "gateway/gateway.h"
#include "outlet.h"
#include "packet.h"
#include "position.h"

#include <jansson.h>

enum close_code {
    CLOSE_GOING_AWAY = 1001,
    CLOSE_PROTOCOL = 1002,
    CLOSE_UNSUPPORTED = 1003,
    CLOSE_POLICY = 1008,
    CLOSE_TOO_BIG = 1009,
    CLOSE_RESTART = 1012,
    CLOSE_REVOKED = 4001,
};

struct connection;

// One connection's place in a stream: it gets the channel's events.
struct seat {
    struct connection *connection;
    uint32_t follow;  // index of this seat's entry in connection->follows
    int64_t from_seq; // the connection gets only later events
};

// The same from the connection's side.
struct follow {
    struct stream *stream;
    uint32_t seat; // index in stream->seats
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

// A user with sockets here.
struct user {
    UT_hash_handle hh;
    char id[EVENT_ID_SIZE];
    struct workspace *workspace;
    struct list workspace_link;
    struct list connections;
    struct list held_marks; // see held_marks.c
    bool is_young;
    int64_t resumed_xid; // 0, or since when a young stream may not have heard marks
    bool manual_away;    // the user chose to be shown as away
    int64_t presence_ms; // when Redis was last told
};

struct workspace {
    UT_hash_handle hh;
    char id[EVENT_ID_SIZE];
    struct list users;
};

enum { CREATED_KNOWN = 128 };

enum connection_state {
    CONNECTION_HEAD,   // the request head is being read
    CONNECTION_TICKET, // Postgres is asked who this is
    CONNECTION_OPEN,
    CONNECTION_DOOMED,  // to be closed at the end of the turn
    CONNECTION_CLOSING, // Close sent; waits for the peer's end
    CONNECTION_DEAD,    // freed at the end of the turn
};

struct receiver;
struct watch;
struct gone;

// What an event stream has in addition to a connection.
struct sse {
    struct position since; // all before it was sent: at first, where the client asked to continue;
                           // xid 0: it begins now
    struct progress progress; // of the backlog since then
    bool is_settled;          // its events have the watermark as their id
    uint32_t serial;          // the last watermark that was asked for without its channels
    char id[POSITION_SIZE];   // of its events until it is settled
    const char *cors;         // CORS headers for the page that asks: static or `cors_text`
    struct resume *resume;    // while earlier events are read back
    char cors_text[512];
};

// An app with links here.
struct app {
    UT_hash_handle hh;
    struct gateway *gateway;
    char id[EVENT_ID_SIZE];
    struct list links;     // its connections; the first is the next to get an envelope
    struct list envelopes; // sent by this gateway, or about to be, and not acked
    int envelope_count;
    char last_channel[EVENT_ID_SIZE]; // of the last event that was offered
    int64_t last_seq;                 // the same
    int64_t counted_ms;               // when Redis was last told of the links
};

enum link_state {
    LINK_NEW, // hello not sent yet
    LINK_READY,
    LINK_WARNED,   // told that it ends soon
    LINK_REFRESHED // told to reconnect
};

struct connection {
    struct gateway *gateway;
    struct list link;       // in gateway->connections
    struct list dirty_link; // while there is something to send or to end; in gateway->dirty or held
    int64_t subscriptions;  // nothing is sent before Redis has confirmed so many
    struct list user_link;
    struct list calls; // posts in work
    struct loop_watch *watch;
    struct user *user; // while it is in user->connections
    struct follow *follows;
    uint32_t follow_count;
    uint32_t follow_capacity;
    struct buffer input;       // the request head, and bytes that came after it before hello
    struct ticket *ticket;     // while CONNECTION_TICKET
    struct sse *sse;           // of an event stream; else NULL
    struct receiver *receiver; // NULL unless a client's message has partly arrived
    struct outlet outlet;
    int fd;
    int call_count;
    int focus_count;
    enum connection_state state;
    uint16_t close_code;
    bool native;              // wants Tidings' own frames
    bool is_deaf;             // what still arrives is thrown away
    bool peer_closed;         // its Close arrived, or its end of file
    const char *close_reason; // static text
    int64_t deadline_ms;      // of the handshake, or of the close
    int64_t heard_ms;
    int64_t pinged_ms;
    int64_t frames_due_us; // for the limit of frames: when those sent so far are paid for
    bool is_link;          // a connection of an app
    struct app *app;       // of a link, while it is open
    struct list app_link;
    enum link_state link_state;
    int64_t link_ends_ms;
    struct list watch_asks; // its questions about presence that are not answered yet
    struct watch **watches; // the users whose presence it subscribed to (not loop watches)
    uint32_t watch_count;
    bool presence_due;      // one of them changed
    bool presence_all;      // it was told of none of them yet
    bool manual_away;       // of its user, when it connected
    int64_t typed_ms;       // when it last sent user_typing
    char id[EVENT_ID_SIZE]; // the origin of its posts
    struct actor actor;
};

// What one file each keeps for the gateway.

struct heads {
    struct stream *cursor; // the next stream whose head is to be compared
    unsigned rounds;
    bool by_store; // this round compares with Postgres, not with Redis
    struct loop_timer *timer;
};

struct holes {
    struct list list;
    struct loop_timer *timer;
};

struct members {
    bool timer_runs; // for young seats
    struct loop_timer *timer;
};

struct marks {
    int64_t notes[2]; // 0 is the older one
    int64_t noted_ms; // when the newer one was taken
    bool any_held;    // see held_marks.c
    bool is_asked;
    bool missed;        // a sweep is due
    int64_t sweep_note; // of the sweep under way; 0: there is none, or its first part has failed
};

struct created {
    char ids[CREATED_KNOWN][EVENT_ID_SIZE]; // channels told of last, a ring
    unsigned next;
};

struct tokens {
    unsigned part; // which part of all tokens is checked next
    struct loop_timer *timer;
};

struct focuses {
    struct list due;
    struct loop_timer *timer;
};

struct watching {
    struct watch *watches;
    bool timer_runs;
    struct loop_timer *timer;
};

struct envelopes {
    struct app *apps;
    struct list acked;  // acked envelopes that Postgres has to be told of
    struct list acking; // those that it is being told of
    int unknown_count;  // in both, of those of which only the id is known
    bool acks_asked;    // the statement that tells it is under way
    bool take_asked;    // kept events are being asked for
    bool take_soon;     // they are to be asked for again after the answer
    int64_t taken_ms;   // when kept events were last asked for
    bool timer_runs;
    struct loop_timer *timer;
};

struct watermark {
    struct position position; // xid 0: there is none yet
    struct position next;     // the one waited for; else xid 0
    struct position notes[2]; // earlier ones; the first is the older
    uint32_t serial;          // number of the question that gave `position`
    uint32_t next_serial;     // number of the last question
    int waiting;              // streams that have not sent enough for `next`
    bool is_asked;            // a question to Postgres is under way
    bool is_whole;            // the last question was about all streams that are here now
    int64_t asked_ms;
    struct loop_timer *timer;
    char text[POSITION_SIZE]; // the position as the id of events
};

struct gateway {
    struct loop *loop;
    struct store *store;
    struct cache *cache;
    struct gateway_options options;
    struct list connections;
    struct list dirty;
    int64_t held_bytes; // of events that streams hold
    struct list held;   // connections that would be in `dirty`, but wait for Redis to subscribe
    int connection_count, sse_count; // all, and the event streams that are open
    int openings;                    // connections whose channels are being read
    struct list opening_next;        // tickets whose channels are read after those
    struct stream *streams;
    struct user *users;
    struct workspace *workspaces;
    struct gone *gone; // users whose last connection ended, until presence_grace_ms is over
    char device[EVENT_ID_SIZE]; // this gateway's name in Redis
    bool draining;
    bool ended;              // being freed: store and cache may be gone
    int asked;               // see gateway_ask(): answers still to come
    int64_t heard_ms;        // when all topics were last known to be subscribed, and nothing late
    bool is_late;            // what others committed is late: see late.h
    int64_t unknown_told_ms; // when the log was last told of a message that is no event
    int64_t swept_ms;        // when missed joins were last asked for
    int64_t era;             // of Postgres: see store.h
    bool changes_missed;     // a stream has changed_missed
    struct loop_timer *tick_timer;
    struct loop_timer *drain_timer;
    struct heads heads;
    struct holes holes;
    struct members members;
    struct marks marks;
    struct created created;
    struct tokens tokens;
    struct focuses focuses;
    struct watching watching;
    struct envelopes envelopes;
    struct watermark watermark;
};

// gateway.c
// To be called with each question to Postgres or Redis, and with its answer: the struct stays until
// the last answer has come, even if the gateway is freed before that.
void gateway_ask(struct gateway *gateway);
bool gateway_answer(struct gateway *gateway); // false: the gateway is gone, do nothing

// connection.c
void connection_accept(struct gateway *gateway, int fd, const char *head, size_t length);
void connection_send(struct connection *c, struct packets *packets); // while OPEN; else nothing
void connection_send_text(struct connection *c, const char *text, size_t length);
// Sends Close and ends it, at the end of this turn. `reason` is static text. Safe anywhere.
void connection_doom(struct connection *c, enum close_code code, const char *reason);
// The same, and counts it in `metric`, unless the connection is ending already.
void connection_doom_counted(struct connection *c, enum metric metric, enum close_code code,
                             const char *reason);
void connection_slow(struct connection *c); // the same, for one that does not read
// Answers the handshake with an HTTP status and ends.
void connection_refuse(struct connection *c, const char *reply);
void connection_open(struct connection *c,
                     const char *reply);     // 101 and hello, then what came early
void connection_begin(struct connection *c); // OPEN, but sends nothing yet
// Upgrades, sends `text` as the only frame, and closes.
void connection_expire(struct connection *c, const char *reply, const char *text);
void connection_closed(struct connection *c); // ends it; its Close is already queued
void connection_flush(struct connection *c);  // at the end of the turn
enum { CONNECTION_TICK_MS = 1000 };
void connection_tick(struct connection *c, int64_t now_ms); // every CONNECTION_TICK_MS
void connection_abort(struct connection *c);                // ends it without a Close
void connection_mark_dirty(struct connection *c);

// ticket.c
void ticket_use(struct connection *c, const char *ticket, const char *reply);
void ticket_use_token(struct connection *c, const char *token);
void ticket_forget(struct connection *c); // its connection is gone

// receive.c
// Takes bytes from the client. -ERROR_INVALID_ARGUMENTS when no more are to be read: after its
// Close, or a breach of the protocol.
NODISCARD int receive(struct connection *c, const void *data, size_t length);
void receiver_free(struct receiver *receiver); // takes NULL
// The client's last frame answered one of ours: it does not count toward its limit of frames.
void receive_free_of_cost(struct connection *c);

// inbound.c
void inbound_message(struct connection *c, const char *text, size_t length);
void inbound_forget(struct connection *c); // the connection is gone: its calls' replies are dropped

// people.c
NODISCARD int user_enter(struct connection *c);
void user_leave(struct connection *c);
void topic_follow(struct gateway *gateway, const char *topic, bool follow);
struct user *user_find(struct gateway *gateway, const char *id);
// Whether sockets get its frame that did not ask for Tidings' own.
bool event_is_for_all(const struct event *event);
// Sends to the user's connections what only the user gets.
void user_send(struct user *user, const struct event *event);
// Sends to those of the user's connections that asked for Tidings' own frames.
void user_send_native(struct gateway *gateway, const char *id, const char *frame, size_t length);
void people_on_created(struct gateway *gateway, struct event *event);
void people_on_message(struct gateway *gateway, const char *topic, struct event *event);

// stream.c
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

// changed.c
void changed_tell(struct stream *stream, int64_t seq); // after the delete or edit `seq`
void changed_tell_all(struct stream *stream, const struct event *event); // after EVENT_STRATEGY
// The channel's row has this generation: if it has risen, EVENT_STRATEGY may have been missed.
void changed_generation(struct stream *stream, int64_t generation);
void changed_tend(struct gateway *gateway); // every CONNECTION_TICK_MS: retries what failed
void changed_hear(struct gateway *gateway, const char *channel_id,
                  const char *user_id); // tells the user's unread count there again
// After a mark: its frame has the count of its commit, but a later count may have been told
// already.
void changed_marked(struct gateway *gateway, const struct event *event, const char *user_id);
void changed_read(struct gateway *gateway, struct params *params,
                  store_fn *fn); // arrays of channels and users; `fn` gets gateway and views
void changed_send(struct gateway *gateway, const struct result *views); // to native sockets

// focus.c
// The connection has a seat in the stream. -ERROR_RATELIMITED: it focuses as many channels as it
// may; -ERROR_MEMORY.
NODISCARD int focus_begin(struct stream *stream, struct connection *c);
void focus_end(struct stream *stream, struct connection *c); // does nothing if there is none
void focus_arrived(struct stream *stream, const struct stream_item *item);
void focus_cursor_moved(struct gateway *gateway, const struct event *event); // after EVENT_MARK
void focus_on_timer(void *gateway);

// hole.c
void hole_heard(struct stream *stream, int64_t seq);                 // there is an event `seq`
bool hole_is_beyond_bound(const struct stream *stream, int64_t seq); // if `seq` were the head
void hole_on_timer(void *gateway);

// heads.c
void heads_check_store(struct gateway *gateway); // compares all streams with Postgres, now
void heads_on_timer(void *gateway);
void heads_young(struct gateway *gateway); // compares those of streams that are new
void heads_forget(struct stream *stream);  // the stream is about to be freed

// joined.c
void joined_tell(const struct stream *stream, const struct user *user); // the user joined
void left_tell(const struct stream *stream, struct user *user, int64_t ts);

// members.c
void members_check(struct stream *stream); // asks which of the users here are in the channel
void members_doubt(struct stream *stream); // the same; nothing is sent until that is known
void members_joined(struct gateway *gateway, struct user *user, const char *channel_id, int64_t seq,
                    struct event *event);
void members_sweep(struct gateway *gateway, bool young_only,
                   int64_t since_s);         // asks for recent joins of users here
void members_young(struct gateway *gateway); // there is a new stream or user: checks again soon
void members_on_timer(void *gateway);

// SQL, for a row of unread_rows: whether anything was marked since the join.
#define MEMBER_IS_MARKED(m)                                                                        \
    "(" m ".seq <> " m ".member_seq OR " m ".epoch > 0 OR " m ".single_version > 0)"

// marks.c. Events without a seq count as heard once they are older than this and nothing was late.
enum { HEARD_LAG_S = 5, USERS_SLICE = 500 };
void marks_note(struct gateway *gateway);       // all topics are subscribed
void marks_note_first(struct gateway *gateway); // before a connection's channels are read
// Topics were not subscribed for a while, or are not: reads what was missed.
void marks_sweep(struct gateway *gateway);
void marks_sweep_resumed(struct gateway *gateway); // those of users who were away
void marks_on_store_up(void *gateway);
// Parameters of a sweep: the users here, and the note since which changes are to be told.
void sweep_params(struct params *params, const struct gateway *gateway);

// The id in "kind:{id}"; false when the topic is of another kind. `ret_id` has EVENT_ID_SIZE bytes.
bool topic_id(const char *topic, const char *kind, char *ret_id);

// presence.c
void presence_enter(struct user *user, struct gateway *gateway); // its connections changed
// Its last one ended, and it is not found any more.
void presence_leave(const struct user *user, struct gateway *gateway);
void presence_tend(struct gateway *gateway);    // users in `gone` whose time is over
void presence_refresh(struct gateway *gateway); // renews entries in Redis before they expire
void presence_forget(struct gateway *gateway);  // Redis may have lost its entries: tells all again
void presence_free(struct gateway *gateway);

// watch.c
// The client's presence_sub or presence_query; `ids` as it sent them, or NULL.
void watch_ask(struct connection *c, const json_t *ids, bool is_query);
void watch_forget(struct connection *c); // the connection ends
void watch_hear(struct gateway *gateway, const char *user_id, const char *word, size_t length);
void watch_refresh(struct gateway *gateway); // looks for entries that expired without a message
void watch_on_timer(void *gateway);
void watch_end(struct gateway *gateway); // the gateway is being freed, its connections are gone

// link.c
void link_open(struct connection *c);  // the connection is open; hello follows
void link_leave(struct connection *c); // the connection ends; it need not be a link
void link_send(struct connection *c, const char *text, size_t length);
// Tells the app to close it; goes ahead of what is queued. `reason` is static text.
void link_disconnect(struct connection *c, const char *reason);
void link_tick(struct connection *c, int64_t now_ms);
void links_refresh(struct gateway *gateway);
struct app *app_find(struct gateway *gateway, const char *id);

// envelope.c
// An event of a channel in which the link has a seat.
void envelope_offer(struct connection *c, const struct stream *stream,
                    const struct stream_item *item);
void envelope_ack(struct connection *c, const char *id);
void envelopes_leave(struct app *app, const struct connection *c); // the link `c` ends
void envelopes_wake(struct app *app);                              // a link is ready
void envelopes_free(struct app *app);
void envelope_on_timer(void *gateway);

// kept.c; more of it is in envelope.h
void kept_linked(const struct app *app); // the app still has links: events are to be kept for it
void kept_end(struct gateway *gateway);  // the gateway is being freed

// ephemeral.c
void ephemeral_hear(struct gateway *gateway, const char *topic, const char *data, size_t length);
void ephemeral_typing(struct connection *c, const char *channel_id); // NULL: the client named none

// sse.c
// The request head of /events is complete: answers it, or asks Postgres whose it is.
void sse_accept(struct connection *c, size_t head_length);
// After asking for the stream's owner (result `r`; `known`: found): the HTTP status with which to
// refuse the stream, or 0.
int sse_refusal(const struct connection *c, int r, bool known);
void sse_refuse(struct connection *c, int status);
void sse_open(struct connection *c, const struct store_outcome *outcome); // of resume_statement
// Tells that anything may be missing: the client is to read all with unread.sync.
void sse_tell_gap(struct connection *c);
void sse_beat(struct connection *c); // keeps it alive
// Gives its events the watermark as their id, if it has got everything below that.
void sse_settle(struct connection *c);
void sse_free(struct connection *c); // does nothing for a socket

// resume.c
void resume_free(struct connection *c);

// watermark.c
void watermark_want(struct gateway *gateway);   // the last one does not cover some event stream
void watermark_passed(struct stream *stream);   // the stream sent what the watermark waits for
void watermark_forget(struct gateway *gateway); // no event stream is left: its notes begin afresh
void watermark_on_timer(void *gateway);
void watermark_lower(struct gateway *gateway, int64_t xid); // Postgres may give ids above it again

// created.c
// The first part of a sweep: new channels. Also takes the next note.
void created_sweep(struct gateway *gateway);
// Appends the frame of a channel: of id, name, is_private, creator, created, after a first column.
void created_write(const struct result *result, int row, struct buffer *out);
// Whether a channel's creation has not been told yet, as far as is known. It counts as told then.
bool created_take(struct gateway *gateway, const char *channel_id);

// tokens.c
void tokens_on_timer(void *gateway);
