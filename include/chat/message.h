// SPDX-License-Identifier: Apache-2.0
// A message as stored and as sent to clients. The only place that converts a row to Slack's JSON.
#pragma once

#include "base/json_writer.h"
#include "store/statement.h"

#include <stdbool.h>
#include <stdint.h>

enum { PREVIEW_CODE_POINTS = 80 }; // the most that latest_preview shows of a message

// Strings point into the result the message was read from, or into memory of the caller.
struct message {
    int64_t ts;
    int64_t seq;
    int64_t ord;
    const char *user_id;
    const char *bot_id;     // "" for people
    const char *bot_app_id; // of a bot: what bot_profile shows
    const char *bot_name;
    int64_t bot_updated; // seconds
    const char *subtype;
    const char *text;
    size_t text_length;
    const char *extra; // JSON object with blocks, attachments, metadata, …; "": none
    size_t extra_length;
    int64_t thread_ts;       // 0: none
    const char *parent_user; // author of the thread's root, for a reply
    bool broadcast;
    const char *client_msg_id; // "": none
    int64_t edited_ts;         // 0: never edited
    const char *edited_by;
    bool deleted;
    bool counted;
    int64_t reply_count; // for a root
    int64_t latest_reply;
    const char *reply_users; // "U1,U2": the first few
    const char *root_text;   // for a broadcast reply; "": not known
    int64_t reply_users_count;
    const char *notes; // JSON members: reactions, pinned_to; "": none
    size_t notes_length;
    // The reader's state of a thread, for its root; valid only if has_reader is set.
    bool has_reader;
    bool subscribed;
    int64_t last_read;
    int64_t unread_count;
};

// A message that was posted, as an ack names it.
struct posted {
    const char *channel_id;
    int64_t ts;
    int64_t seq;
    bool is_duplicate; // a message with this key existed already
    const char *text;
    size_t text_length;
};

enum { MESSAGE_COLUMNS = 25 };
// SELECT list of message_rows, in the order message_read() expects. `viewer` comes first among
// those who reacted; '': nobody. Messages without notes cost nothing.
#define MESSAGE_SELECT_IF(r, noted, viewer)                                                        \
    r ".ts, " r ".seq, " r ".ord, " r ".user_id, " r ".bot_id, " r ".subtype, " r ".body, " r      \
      ".extra, " r ".thread_ts, " r ".parent_user, " r ".broadcast, " r ".client_msg_id, " r       \
      ".edited_ts, " r ".edited_by, " r ".deleted, " r ".counted, " r ".reply_count, " r           \
      ".latest_reply, " r ".reply_users, " r ".root_body, " r ".reply_users_count, " r             \
      ".bot_app_id, " r ".bot_name, " r ".bot_updated, CASE WHEN " noted " THEN message_notes(" r  \
      ".channel_id, " r ".ts, " viewer ") END"
#define MESSAGE_SELECT(r, viewer) MESSAGE_SELECT_IF(r, r ".noted", viewer)
// The message `r` of an event `e`: the frame of a note does not show what was noted.
#define MESSAGE_OF_EVENT_SELECT(viewer)                                                            \
    MESSAGE_SELECT_IF("r", "r.noted AND e.kind <> 'note'", viewer)
// Follows a FROM with events `e` of `channel`, and adds each event's message as r, by one lookup
// per event: OFFSET 0 keeps the planner from joining with all messages of the channel.
#define MESSAGE_OF_EVENT_JOIN(channel)                                                             \
    " LEFT JOIN LATERAL (SELECT * FROM message_rows w WHERE w.channel_id = " channel               \
    " AND w.ts = e.message_ts OFFSET 0) r ON true"

// Reads the columns of message_rows (those after channel_id), starting at `column`.
void message_read(const struct result *result, int row, int column, struct message *ret_message);

// The columns of thread_rows for message_read_reader(); NULL for a reader without state in the
// thread.
enum { MESSAGE_READER_COLUMNS = 3 };
#define MESSAGE_READER_SELECT(v) v ".following, " v ".ts, " v ".unread"
// Adds the reader's state of the thread to `message`, its root.
void message_read_reader(const struct result *result, int row, int column, struct message *message);

// Writes the message object {"type":"message",…}; a deleted message becomes a tombstone without
// text.
void message_write(struct json_writer *w, const struct message *message, const char *workspace_id);

// Writes the members without the braces, for frames that add members of their own.
void message_write_members(struct json_writer *w, const struct message *message,
                           const char *workspace_id);
