// SPDX-License-Identifier: Apache-2.0
// An event: something that happened and was committed, on its way to Redis and to every device.
// Immutable once it is shared; reference counted, so any thread may hold one.
//
// On the wire (Kafka's value, and the message of Redis pub/sub) an event is one JSON object; this
// release writes it without blanks and in this order:
//   {"v":1,"kind":"post","workspace":"T…","channel":"C…","private":false,"channel_type":0,
//    "unread_only":false,"counted":true,"user":"U…","seq":7,"event_ts":"…","ts":"…","origin":"",
//    "deleted_ord":0,"deleted_user":"","head":{…},"member":{…},"frame":{what sockets get}}
#pragma once

#include "base/buffer.h"
#include "base/channel.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_kind {
    EVENT_POST, // also thread replies
    EVENT_EDIT,
    EVENT_DELETE,
    EVENT_JOIN,
    EVENT_LEAVE,
    EVENT_ARCHIVE,
    EVENT_UNARCHIVE,
    EVENT_RENAME,
    // These have no seq:
    EVENT_CREATED,       // a channel was created; for the workspace, or its creator when private
    EVENT_MARK,          // a user's read position changed in a channel, or what is unread there
    EVENT_THREAD_MARK,   // a user's read position in the thread whose root is `ts`
    EVENT_THREAD_FOLLOW, // a user follows that thread now, or no longer
    EVENT_STRATEGY,      // a channel moved to another strategy; `ts` holds the former one
    EVENT_EPHEMERAL,     // a message for one user that is stored nowhere
    EVENT_KIND_MAX
};

// How a channel keeps unread state; the numbers are those in the tables.
enum strategy { STRATEGY_SEQUENCE, STRATEGY_ZSET, STRATEGY_COUNTER, STRATEGY_BITMAP, STRATEGY_MAX };

enum { EVENT_ID_SIZE = 24, OUTBOX_ID_SIZE = 48, EVENT_REASON_SIZE = 128 };

// A channel's head as it was after `seq`: absolute, so the highest seq wins.
struct event_head {
    int64_t seq;
    int64_t ord;
    int64_t strategy;   // enum strategy, in use
    int64_t generation; // what Redis counted under a lower one is not believed
};

// A member's read position: absolute. The highest (epoch, ts) wins; the highest member_seq decides
// `active`.
struct event_member {
    int64_t epoch;
    int64_t ts;
    int64_t seq;
    int64_t ord;
    int64_t own;            // own counted posts at or before the cursor
    int64_t posts;          // own counted posts in all
    int64_t member_seq;     // seq of the last join or leave
    int64_t number;         // the member's place in the channel's bitmap; -1: none
    int64_t single_version; // rises when the messages read one by one change
    bool active;
};

struct event {
    enum event_kind kind;
    bool is_private;  // of the channel
    bool counted;     // a count-bearing message
    bool unread_only; // of a MARK: what is unread changed, or what its reader wants to hear; the
                      // position did not
    int64_t channel_type; // enum channel_type; of an event with a seq
    char workspace_id[EVENT_ID_SIZE];
    char channel_id[EVENT_ID_SIZE];
    char user_id[EVENT_ID_SIZE]; // author; who joined, left, marked, created
    char origin[EVENT_ID_SIZE];  // the socket it was posted on, which gets an ack and no frame; "":
                                 // none
    int64_t seq;
    int64_t event_ts;
    int64_t ts;             // of the message concerned
    struct event_head head; // not of events of a single user
    int64_t deleted_ord;    // of a DELETE: the counted message's ord, else 0
    char deleted_user[EVENT_ID_SIZE];
    struct event_member member; // of JOIN, LEAVE, MARK; of THREAD_…: only `ts`, the cursor there
    char *frame;                // JSON text, owned
    size_t frame_length;
    int references; // by event_ref/unref only
};

// A zeroed event with one reference, to be filled in before it is shared. Takes over `frame`
// (heap). NULL when there is no memory (the frame is freed then).
struct event *event_new(enum event_kind kind, char *frame, size_t frame_length);
// The same with the content of `frame`, which is empty afterwards. Also NULL if writing `frame` had
// failed.
struct event *event_take_frame(enum event_kind kind, struct buffer *frame);
struct event *event_ref(struct event *event);
void event_unref(struct event *event); // takes NULL

// "post", "edit", …
const char *event_kind_name(enum event_kind kind);
bool event_kind_is_thread(enum event_kind kind); // THREAD_…
NODISCARD int event_kind_parse(const char *name, enum event_kind *ret_kind);

// Writes the wire form; look at buffer_failed().
void event_encode(const struct event *event, struct buffer *out);
// Reads the wire form: fast as event_encode() writes it; else in any order, with blanks, unknown
// fields, and without those that the kind can do without. The input may be hostile, so version, ids
// and numbers are checked strictly. -ERROR_INVALID_ARGUMENTS, -ERROR_MEMORY, with the reason in
// words (printable, EVENT_REASON_SIZE bytes): "of a later version: …", "of an unknown kind: …",
// "not in the form of an event: …".
NODISCARD int event_decode(const char *data, size_t length, struct event **ret_event,
                           char *ret_reason);
