// SPDX-License-Identifier: Apache-2.0
// The inside of the gateway, and who does what:
//
//   gateway.c     making, draining, freeing; what happens every second, and at the end of a turn
//   connection.c  one connection from takeover to close; outlet.c its queue, packet.c what is in it
//   handshake.c   the request head of a socket, parsed and answered (pure)
//   ticket.c      from a ticket or token to an actor, its channels, and hello
//   receive.c     bytes of the client to messages (wslay)
//   inbound.c     messages of the client: posts, pings; focus.c what it has before its eyes
//   people.c      users and workspaces with sockets here, and their topics
//   stream.c      a channel's events in order, and who gets them
//   hole.c        events that did not come by themselves; page.c reads them
//   heads.c       what ought to have come
//   members.c     who is in a channel, when events did not tell
//   marks.c       marks that were not heard; created.c new channels
//   changed.c     what is unread after a delete, an edit or a preference
//   joined.c      what only the user hears who came into a channel or left it
//   tokens.c      tokens that are no good any more
//   sse.c         event streams: their opening; sse_head.c their request (pure)
//   resume.c      those that go on where an earlier one ended; position.c where that is
//   watermark.c   how far all event streams here have got
//   presence.c    tells Redis who is connected here; watch.c sockets that want to hear of others
//   ephemeral.c   frames that are kept nowhere: who types
//   link.c        connections of apps (Socket Mode)
//   envelope.c    what they get; kept.c what of it is kept
#pragma once

#include "base/list.h"
#include "base/metrics.h"
#include "events/event.h"
#include "gateway/gateway.h"
#include "outlet.h"
#include "packet.h"
#include "position.h"

#include <jansson.h>
#include <uthash.h>

enum close_code {
    CLOSE_GOING_AWAY = 1001,
    CLOSE_PROTOCOL = 1002,
    CLOSE_UNSUPPORTED = 1003,
    CLOSE_POLICY = 1008,
    CLOSE_RESTART = 1012,
    CLOSE_REVOKED = 4001,
};

struct connection;

// One connection's place among those that get a channel's events.
struct seat {
    struct connection *connection;
    uint32_t follow;  // of the connection, its way back to here
    int64_t from_seq; // events up to it were told of before the connection was there
};

struct follow {
    struct stream *stream;
    uint32_t seat; // of the stream
};

// A post of a socket here that was acked: its event brings the socket nothing new.
struct own_post {
    struct list link;
    int64_t seq;
    char origin[EVENT_ID_SIZE];
};

// An event that came ahead of its turn.
struct held {
    struct list link;
    struct event *event;
};

struct stream {
    UT_hash_handle hh;
    struct gateway *gateway;
    char channel_id[EVENT_ID_SIZE];
    char workspace_id[EVENT_ID_SIZE];
    int64_t sent_seq;       // all up to it was sent
    int64_t known_seq;      // the highest seq heard of
    int64_t membership_seq; // of the last join or leave sent
    int64_t watermark_seq;  // the next watermark waits until it is sent; 0: it does not
    struct seat *seats;
    uint32_t seat_count;
    uint32_t sse_count; // event streams among them
    uint32_t seat_capacity;
    struct list held; // by seq
    int held_count;
    struct list own_posts;
    struct list focuses;   // see focus.c
    struct list hole_link; // in gateway->holes while something is missing
    int64_t waiting_ms;    // since when nothing went on in the hole
    int64_t asked_ms;      // when the last page was asked for
    int hole_reads;        // asked of Postgres for it
    bool hole_asked;       // a page is being read
    bool is_young;         // its topic may not have been subscribed when its first events came
    bool members_asked;
    bool members_due;       // to be asked once more, soon
    bool members_unknown;   // somebody here may have left: until Postgres has told, nothing is sent
    int64_t changed_ms;     // when the last delete or edit was sent
    bool changed_missed;    // what users have unread is to be told to them anew
    int64_t generation;     // of the channel's strategy, as was told; -1: not known yet
    int64_t empty_since_ms; // 0 while somebody sits here
};

// A user with sockets here.
struct user {
    UT_hash_handle hh;
    char id[EVENT_ID_SIZE];
    struct workspace *workspace;
    struct list workspace_link;
    struct list connections;
    bool is_young;
    bool manual_away;    // what the user chose to be shown as
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

// What an event stream is more than a socket.
struct sse {
    struct position since;  // where the client asked to go on; xid 0: it begins now
    bool is_settled;        // its events have the watermark for id
    uint32_t serial;        // the last watermark that was asked for without its channels
    char id[POSITION_SIZE]; // of its events until then
    const char *cors;       // headers for the page that asks: static or `cors_text`
    struct resume *resume;  // while events of before are read back
    char cors_text[512];
};

// An app with links here.
struct app {
    UT_hash_handle hh;
    struct gateway *gateway;
    char id[EVENT_ID_SIZE];
    struct list links;     // its connections, the one whose turn it is first
    struct list envelopes; // sent here, or about to be, and not acked
    int envelope_count;
    char last_channel[EVENT_ID_SIZE]; // the last event that was offered
    int64_t last_seq;
    int64_t counted_ms; // when Redis was last told of the links
};

enum link_state {
    LINK_NEW, // its hello is to come
    LINK_READY,
    LINK_WARNED,   // told that it ends soon
    LINK_REFRESHED // told to connect anew
};

struct connection {
    struct gateway *gateway;
    struct list link;       // in gateway->connections
    struct list dirty_link; // while there is something to send or to end; in gateway->dirty or held
    int64_t subscriptions;  // nothing is sent before Redis has confirmed so many
    struct list user_link;
    struct list calls; // posts in work
    struct loop_watch *watch;
    struct user *user; // while it counts as one of its sockets
    struct follow *follows;
    uint32_t follow_count;
    uint32_t follow_capacity;
    struct buffer input;       // the head, and what came behind it before hello
    struct ticket *ticket;     // while TICKET
    struct sse *sse;           // NULL: a socket
    struct receiver *receiver; // NULL unless a message of the client is partly here
    struct outlet outlet;
    int fd;
    int call_count;
    int focus_count;
    enum connection_state state;
    uint16_t close_code;
    bool native;
    bool is_deaf;             // what still comes is thrown away
    bool peer_closed;         // its Close came, or the end of its bytes
    const char *close_reason; // static text
    int64_t deadline_ms;      // of the handshake, or of the close
    int64_t heard_ms;
    int64_t pinged_ms;
    int64_t frames_due_us; // flood bound: the time that its frames were worth so far
    bool is_link;          // it asked to be an app's
    struct app *app;       // while it is open
    struct list app_link;
    enum link_state link_state;
    int64_t link_ends_ms;
    struct list watch_asks; // about presence, that are not answered yet
    struct watch **watches; // whose presence it wants to hear of
    uint32_t watch_count;
    bool presence_due; // one of them changed
    bool presence_all; // it knows of none yet
    bool manual_away;  // of its user, when it came
    int64_t typed_ms;
    char id[EVENT_ID_SIZE]; // the origin of its posts
    struct actor actor;
};

struct watermark {
    struct position position; // xid 0: there is none yet
    struct position next;     // while it is waited for, else xid 0
    struct position notes[2]; // earlier ones; the first is the older
    uint32_t serial;          // which ask the position is from
    uint32_t next_serial;     // the last ask
    int waiting;              // streams that have not sent enough for the next one
    bool is_asked;
    bool is_whole; // the last ask was of all streams that are here
    int64_t asked_ms;
    char text[POSITION_SIZE]; // the position as the id of events
};

struct gateway {
    struct loop *loop;
    struct store *store;
    struct cache *cache;
    struct gateway_options options;
    struct list connections;
    struct list dirty;
    struct list held; // as dirty, but for Redis
    int connection_count;
    int sse_count; // event streams that are open
    int openings;  // connections whose channels are being read
    struct watermark watermark;
    char device[EVENT_ID_SIZE]; // by which Redis knows this gateway
    struct list gone;           // users whose last connection went, for a while
    struct watch *watches;
    bool watch_waits; // watch_timer runs
    struct app *apps;
    bool envelopes_wait; // envelope_timer runs
    struct list acked;   // envelopes that Postgres is to be told of
    struct list acking;  // and those that it is being told of
    bool acks_asked;
    bool take_asked;
    bool take_soon;   // once more after the answer
    int64_t taken_ms; // when kept events were last asked for
    struct stream *streams;
    struct user *users;
    struct workspace *workspaces;
    struct list holes;
    struct list focuses_due;    // see focus.c
    struct stream *head_cursor; // the next stream whose head is to be compared
    unsigned head_rounds;
    bool heads_by_store; // in this round
    bool young_waits;    // young_timer runs
    bool draining;
    bool ended;       // being freed: store and cache may be gone
    int asked;        // answers that are still to come
    int64_t heard_ms; // when topics were last known to be heard
    int64_t swept_ms;
    int64_t era;                                // of Postgres: see store.h
    int64_t mark_notes[2];                      // see marks.c; 0 is the older one
    int64_t noted_ms;                           // when the newer one was taken
    char created[CREATED_KNOWN][EVENT_ID_SIZE]; // channels told of last, a ring
    unsigned created_next;
    bool marks_asked;
    bool marks_missed;   // a sweep is due
    bool changes_missed; // of some stream
    int64_t sweep_note;  // of the sweep in work; 0: none, or its first part has failed
    struct loop_timer *tick_timer;
    struct loop_timer *head_timer;
    struct loop_timer *hole_timer;
    struct loop_timer *young_timer;
    struct loop_timer *token_timer;
    unsigned token_part; // of all tokens, that is checked next
    struct loop_timer *drain_timer;
    struct loop_timer *focus_timer;
    struct loop_timer *watermark_timer;
    struct loop_timer *watch_timer;
    struct loop_timer *envelope_timer;
};

// gateway.c
// Each question put to others keeps the gateway's struct until its answer came, also when it is
// freed before that.
void gateway_ask(struct gateway *gateway);
bool gateway_answer(struct gateway *gateway); // false: the gateway is gone, do nothing

// connection.c
void connection_accept(struct gateway *gateway, int fd, const char *head, size_t length);
void connection_send(struct connection *c, struct packets *packets); // while OPEN; else nothing
void connection_send_text(struct connection *c, const char *text, size_t length);
// Sends Close and ends it, at the end of this turn. `reason` is static text. Safe anywhere.
void connection_doom(struct connection *c, enum close_code code, const char *reason);
// The same, counted, but once: what comes behind what ends a connection may end it as well.
void connection_doom_counted(struct connection *c, enum metric metric, enum close_code code,
                             const char *reason);
void connection_slow(struct connection *c); // the same, of one that does not read
// Answers the handshake with an HTTP status and ends.
void connection_refuse(struct connection *c, const char *reply);
void connection_open(struct connection *c,
                     const char *reply);     // 101 and hello, then what came early
void connection_begin(struct connection *c); // OPEN, without a word yet
// Upgrades, sends `text` as the only frame, and closes.
void connection_expire(struct connection *c, const char *reply, const char *text);
void connection_closed(struct connection *c); // Close is queued already: only ends now
void connection_flush(struct connection *c);  // at the end of the turn
enum { CONNECTION_TICK_MS = 1000 };
void connection_tick(struct connection *c, int64_t now_ms); // every CONNECTION_TICK_MS
void connection_abort(struct connection *c);                // ends it without a word
void connection_mark_dirty(struct connection *c);

// ticket.c
void ticket_use(struct connection *c, const char *ticket, const char *reply);
void ticket_use_token(struct connection *c, const char *token);
void ticket_forget(struct connection *c); // its connection is gone

// receive.c
// Takes bytes of the client. -ERROR_INVALID_ARGUMENTS when nothing more is to be read: after its
// Close, or a breach of the protocol.
NODISCARD int receive(struct connection *c, const void *data, size_t length);
void receiver_free(struct receiver *receiver); // takes NULL
// The frame that came last answers one of ours: it does not count as flood.
void receive_free_of_cost(struct connection *c);

// inbound.c
void inbound_message(struct connection *c, const char *text, size_t length);
void inbound_forget(struct connection *c); // its calls in work get nobody to answer to

// people.c
NODISCARD int user_enter(struct connection *c);
void user_leave(struct connection *c);
void topic_follow(struct gateway *gateway, const char *topic, bool follow);
struct user *user_find(struct gateway *gateway, const char *id);
// To the sockets that asked for frames of Tidings' own.
void user_send_native(struct gateway *gateway, const char *id, const char *frame, size_t length);
void people_on_created(struct gateway *gateway, struct event *event);
void people_on_message(struct gateway *gateway, const char *topic, struct event *event);

// stream.c
struct stream *stream_find(struct gateway *gateway, const char *channel_id);
// The stream of a channel; a new one (subscribed to) begins after `seq`. NULL without memory.
struct stream *stream_follow(struct gateway *gateway, const char *workspace_id,
                             const char *channel_id, int64_t seq);
void stream_free(struct stream *stream);
// Seats a connection that does not sit there yet; it gets what comes after `from_seq`.
// -ERROR_MEMORY.
NODISCARD int stream_seat(struct stream *stream, struct connection *c, int64_t from_seq);
// The same by a list of channels that is of the time when the head was `seq`.
NODISCARD int stream_enter(struct stream *stream, struct connection *c, int64_t seq,
                           int64_t from_seq);
// All connections of a user; those hear of the channel as a whole when one of them was not there.
void stream_seat_user(struct stream *stream, struct user *user, int64_t from_seq);
// All but those that came by a list of channels which knows of the leave at `seq`.
void stream_unseat_user(struct stream *stream, const struct user *user, int64_t seq);
void stream_unseat_all(struct connection *c); // gives up all seats of a connection
bool stream_has(const struct stream *stream, const struct connection *c);
bool stream_has_user(const struct stream *stream, const struct user *user); // each connection
// Goes back to `seq`, for who is seated next: what came since is read anew. Those who sit there do
// not get it again, and what it says of members is known.
void stream_rewind(struct stream *stream, int64_t seq);
void stream_offer(struct stream *stream,
                  struct event *event); // an event of its topic, in any order

struct stream_item {
    int64_t seq;
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
// A gap that could not be filled: tells of it. What comes after it waits until Postgres has told
// who is still a member, when stream_go_on() sends it.
void stream_skip(struct stream *stream, int64_t to_seq);
void stream_go_on(struct stream *stream);
void stream_gap_write(const char *channel_id, int64_t from_seq, int64_t to_seq, struct buffer *out);

// changed.c
void changed_tell(struct stream *stream, int64_t seq); // after the delete or edit `seq`
void changed_tell_all(struct stream *stream, const struct event *event); // after EVENT_STRATEGY
// The channel's row has it: when it has risen, EVENT_STRATEGY may not have been heard.
void changed_generation(struct stream *stream, int64_t generation);
void changed_tend(struct gateway *gateway); // every CONNECTION_TICK_MS: what could not be read
void changed_hear(struct gateway *gateway, const char *channel_id,
                  const char *user_id); // what the user has unread there is to be told anew
// After a mark, which has the count of its commit: what came after that may have been told already.
void changed_marked(struct gateway *gateway, const struct event *event, const char *user_id);
void changed_read(struct gateway *gateway, struct params *params,
                  store_fn *fn); // arrays of channels and users; `fn` gets gateway and views
void changed_send(struct gateway *gateway, const struct result *views); // to native sockets

// focus.c
// The connection sits in the stream. -ERROR_RATELIMITED: it has as many as it may; -ERROR_MEMORY.
NODISCARD int focus_begin(struct stream *stream, struct connection *c);
void focus_end(struct stream *stream, struct connection *c); // also when there is none
void focus_arrived(struct stream *stream, const struct stream_item *item);
void focus_cursor_moved(struct gateway *gateway, const struct event *event); // after EVENT_MARK
void focus_on_timer(void *gateway);

// hole.c
void hole_heard(struct stream *stream, int64_t seq);                 // that there is an event `seq`
bool hole_is_beyond_bound(const struct stream *stream, int64_t seq); // if `seq` were the head
void hole_on_timer(void *gateway);

// heads.c
void heads_check_store(struct gateway *gateway); // a round over all streams, now, with the truth
void heads_on_timer(void *gateway);
void heads_young(struct gateway *gateway); // of streams that are new
void heads_forget(struct stream *stream);  // it is about to be freed

// joined.c
void joined_tell(const struct stream *stream, const struct user *user); // the user came in
void left_tell(const struct stream *stream, struct user *user, int64_t ts);

// members.c
void members_check(struct stream *stream); // who of the users here is in the channel
void members_doubt(struct stream *stream); // the same; until it is known nothing is sent
void members_joined(struct gateway *gateway, struct user *user, const char *channel_id, int64_t seq,
                    struct event *event);
void members_sweep(struct gateway *gateway, bool young_only,
                   int64_t since_s);         // recent joins of users here
void members_young(struct gateway *gateway); // something new is to be looked at once more, soon
void members_on_timer(void *gateway);

// Of a row of unread_rows: a cursor that moved since the join, or back, or messages read one by
// one.
#define MEMBER_IS_MARKED(m)                                                                        \
    "(" m ".seq <> " m ".member_seq OR " m ".epoch > 0 OR " m ".single_version > 0)"

// marks.c. What has no seq was heard when it is older than this, and the outbox was seen since to
// hold nothing late.
enum { HEARD_LAG_S = 5 };
#define HEARD_LATE                                                                                 \
    "EXISTS (SELECT FROM outbox WHERE NOT done AND created < now() - interval '2 seconds')"
void marks_note(struct gateway *gateway);       // topics are heard
void marks_note_first(struct gateway *gateway); // a user comes: asked before what hello tells of
void marks_sweep(
    struct gateway *gateway); // topics were not heard, or are not: reads what was missed

// The id in "kind:{id}"; false when the topic is of another kind. `ret_id` has EVENT_ID_SIZE bytes.
bool topic_id(const char *topic, const char *kind, char *ret_id);

// presence.c
void presence_enter(struct user *user, struct gateway *gateway);       // its connections changed
void presence_leave(const struct user *user, struct gateway *gateway); // the last one went
void presence_tend(struct gateway *gateway);    // those who are gone for long
void presence_refresh(struct gateway *gateway); // before their time runs out
void presence_forget(struct gateway *gateway);  // Redis may have: all are to be told again
void presence_free(struct gateway *gateway);

// watch.c
// The client's presence_sub or presence_query; `ids` as it sent them, or NULL.
void watch_ask(struct connection *c, const json_t *ids, bool is_query);
void watch_forget(struct connection *c); // it leaves
void watch_hear(struct gateway *gateway, const char *user_id, const char *word, size_t length);
void watch_refresh(struct gateway *gateway); // what may have run out unheard
void watch_on_timer(void *gateway);
void watch_end(struct gateway *gateway); // it is being freed, its connections are gone

// link.c
void link_open(struct connection *c);  // is open, its hello follows
void link_leave(struct connection *c); // takes any connection
void link_send(struct connection *c, const char *text, size_t length);
// Tells it to go; overtakes what is queued. `reason` is static text.
void link_disconnect(struct connection *c, const char *reason);
void link_tick(struct connection *c, int64_t now_ms);
void links_refresh(struct gateway *gateway);
struct app *app_find(struct gateway *gateway, const char *id);

// envelope.c
// An event of a channel where the link sits.
void envelope_offer(struct connection *c, const struct stream *stream,
                    const struct stream_item *item);
void envelope_ack(struct connection *c, const char *id);
void envelopes_leave(struct app *app, const struct connection *c); // the link goes
void envelopes_wake(struct app *app);                              // a link is ready
void envelopes_free(struct app *app);
void envelope_on_timer(void *gateway);

// kept.c, more of it in envelope.h
void kept_linked(const struct app *app); // it has links still: events are to be kept for it
void kept_end(struct gateway *gateway);  // it is being freed

// ephemeral.c
void ephemeral_hear(struct gateway *gateway, const char *topic, const char *data, size_t length);
void ephemeral_typing(struct connection *c, const char *channel_id); // NULL: none was named

// sse.c
// The head of /events is here: answers, or asks who this is.
void sse_accept(struct connection *c, size_t head_length);
// The HTTP status to refuse a stream with, when its owner was asked for (`r`) and found, or not; 0.
int sse_refusal(const struct connection *c, int r, bool known);
void sse_refuse(struct connection *c, int status);
void sse_open(struct connection *c, const struct store_outcome *outcome); // of resume_statement
void sse_beat(struct connection *c);                                      // says that it lives
// Lets its events have the watermark for id, once it has got all that is below it.
void sse_settle(struct connection *c);
void sse_free(struct connection *c); // takes a socket, too

// resume.c
void resume_free(struct connection *c);

// watermark.c
void watermark_want(struct gateway *gateway); // an event stream is there that the last has not seen
void watermark_passed(struct stream *stream); // what it waited for was sent
void watermark_forget(
    struct gateway *gateway); // no event stream is left: what was heard is noted anew
void watermark_on_timer(void *gateway);
void watermark_lower(struct gateway *gateway, int64_t xid); // ids above it may be given once more

void marks_on_store_up(void *gateway);
// The users here, and the note since which they are to be told.
void sweep_params(struct params *params, const struct gateway *gateway);

// created.c
// The first part of a sweep, which also takes the next note.
void created_sweep(struct gateway *gateway);
// Appends the frame of a channel whose columns (id, name, is_private, creator, created) follow the
// first.
void created_write(const struct result *result, int row, struct buffer *out);
// Whether a channel's creation is to be told: not yet, as far as is known. Then it counts as told.
bool created_take(struct gateway *gateway, const char *channel_id);

// tokens.c
void tokens_on_timer(void *gateway);
