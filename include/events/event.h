// SPDX-License-Identifier: Apache-2.0
// An event: a committed change, to be delivered to Redis and to every device. Immutable once
// shared; reference-counted, so any thread may hold one.
//
// On the wire (a Kafka record's value, or a message of Redis pub/sub) an event is a JSON object.
// This release writes it without blanks and in this order:
//   {"v":1,"kind":"post","workspace":"T…","channel":"C…","private":false,"channel_type":0,
//    "unread_only":false,"counted":true,"user":"U…","seq":7,"event_ts":"…","ts":"…","origin":"",
//    "deleted_ord":0,"deleted_user":"","head":{…},"member":{…},"note":{…},"frame":{what sockets
//    get}}
#pragma once

#include "base/buffer.h"
#include "base/channel.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_kind {
    EVENT_POST, // or a thread reply
    EVENT_EDIT,
    EVENT_DELETE,
    EVENT_JOIN,
    EVENT_LEAVE,
    EVENT_ARCHIVE,
    EVENT_UNARCHIVE,
    EVENT_RENAME,
    EVENT_NOTE, // about a message, of no account for what is unread: a reaction, a pin …
    // Kinds without a seq:
    EVENT_CREATED,       // new channel; for the workspace, or only for its creator if private
    EVENT_MARK,          // a user's read position in a channel, or what is unread there, changed
    EVENT_THREAD_MARK,   // a user's read position in the thread of root `ts` changed
    EVENT_THREAD_FOLLOW, // a user started or stopped following that thread
    EVENT_STRATEGY,      // a channel switched its strategy; `ts` holds the previous one
    EVENT_EPHEMERAL,     // a message for one user, stored nowhere
    EVENT_KIND_MAX
};

// How a channel keeps unread state. The numbers are those stored in the tables.
enum strategy { STRATEGY_SEQUENCE, STRATEGY_ZSET, STRATEGY_COUNTER, STRATEGY_BITMAP, STRATEGY_MAX };

enum { EVENT_ID_SIZE = 24, EVENT_NOTE_SIZE = 32, OUTBOX_ID_SIZE = 48, EVENT_REASON_SIZE = 128 };

// A channel's head right after `seq`. Absolute state: the highest seq wins.
struct event_head {
    int64_t seq;
    int64_t ord;
    int64_t strategy;   // enum strategy currently in use
    int64_t generation; // counts of a lower generation in Redis are void
};

// A member's read position. Absolute state: the highest (epoch, ts) wins, and the highest
// member_seq decides `active`.
struct event_member {
    int64_t epoch;
    int64_t ts;
    int64_t seq;
    int64_t ord;
    int64_t own;            // own counted posts at or before the cursor
    int64_t posts;          // own counted posts in total
    int64_t member_seq;     // seq of the last join or leave
    int64_t number;         // index in the channel's bitmap; -1: none
    int64_t single_version; // rises when the set of messages read individually changes
    bool active;            // of a THREAD_FOLLOW: whether the user now follows the thread
};

struct event {
    enum event_kind kind;
    bool is_private;      // the channel is private
    bool counted;         // the message can be unread
    bool unread_only;     // of a MARK: only unread state or notification settings changed, not the
                          // position
    int64_t channel_type; // enum channel_type, of an event with a seq, or a MARK
    char workspace_id[EVENT_ID_SIZE];
    char channel_id[EVENT_ID_SIZE];
    char user_id[EVENT_ID_SIZE]; // the author, or whoever joined, left, marked or created
    char origin[EVENT_ID_SIZE];  // posting socket, which gets an ack instead of the frame; "": none
    int64_t seq;
    int64_t event_ts;
    int64_t ts;             // of the message concerned
    struct event_head head; // except for events of a single user
    int64_t deleted_ord;    // of a DELETE: the ord of the counted message, else 0
    char deleted_user[EVENT_ID_SIZE];
    char note[EVENT_NOTE_SIZE]; // of a NOTE: the type of its frame, such as "reaction_added"
    struct event_member member; // of JOIN, LEAVE, MARK; THREAD_…: only `ts`, the cursor,
                                // and `active`
    char *frame;                // JSON text, owned
    size_t frame_length;
    int references; // only for event_ref() and event_unref()
};

// Creates a zeroed event with one reference, to be filled in before it is shared. Takes over
// `frame` (heap), even on failure. NULL if out of memory.
struct event *event_new(enum event_kind kind, char *frame, size_t frame_length);
// The same with the contents of `frame`, which is empty afterwards. Also NULL if a write to `frame`
// failed.
struct event *event_take_frame(enum event_kind kind, struct buffer *frame);
struct event *event_ref(struct event *event);
void event_unref(struct event *event); // accepts NULL

// "post", "edit", …
const char *event_kind_name(enum event_kind kind);
bool event_kind_is_thread(enum event_kind kind); // THREAD_…
// The name of a note: 1 to EVENT_NOTE_SIZE - 1 of a-z and _.
bool event_note_is_valid(const char *name);
NODISCARD int event_kind_parse(const char *name, enum event_kind *ret_kind);

// Appends the wire format. Check buffer_failed() afterwards.
void event_encode(const struct event *event, struct buffer *out);
// Decodes the wire format: quickly if event_encode() wrote it, otherwise in any field order, with
// blanks, unknown fields, and without optional fields. The input may be hostile, so version, ids
// and numbers are checked strictly. -ERROR_INVALID_ARGUMENTS or -ERROR_MEMORY, with a printable
// reason of at most EVENT_REASON_SIZE bytes: "of a later version: …", "of an unknown kind: …", "not
// in the form of an event: …".
NODISCARD int event_decode(const char *data, size_t length, struct event **ret_event,
                           char *ret_reason);
