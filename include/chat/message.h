// SPDX-License-Identifier: Apache-2.0
// A message, as the tables hold it and as clients see it: only here a row is turned into Slack's
// JSON.
#pragma once

#include "base/json_writer.h"
#include "store/statement.h"

#include <stdbool.h>
#include <stdint.h>

// Texts point into the result that the message was read from (or the caller's memory).
struct message {
    int64_t ts;
    int64_t seq;
    int64_t ord;
    const char *user_id;
    const char *bot_id; // "" for people
    const char *subtype;
    const char *text;
    size_t text_length;
    const char *extra; // JSON object of blocks, attachments, metadata, …; "" when none
    size_t extra_length;
    int64_t thread_ts;       // 0 when none
    const char *parent_user; // of a reply
    bool broadcast;
    const char *client_msg_id; // "" when none
    int64_t edited_ts;         // 0 when never
    const char *edited_by;
    bool deleted;
    bool counted;
    int64_t reply_count; // of a root
    int64_t latest_reply;
    const char *reply_users; // "U1,U2": the first few
    const char *root_text;   // of a broadcast reply, "" when not known
    int64_t reply_users_count;
    // Of a thread's root, for one reader; only where has_reader is set.
    bool has_reader;
    bool subscribed;
    int64_t last_read;
    int64_t unread_count;
};

enum { MESSAGE_COLUMNS = 21 };
// The columns of message_rows that message_read() takes, in its order: for a SELECT list.
#define MESSAGE_SELECT(r)                                                                          \
    r ".ts, " r ".seq, " r ".ord, " r ".user_id, " r ".bot_id, " r ".subtype, " r ".body, " r      \
      ".extra, " r ".thread_ts, " r ".parent_user, " r ".broadcast, " r ".client_msg_id, " r       \
      ".edited_ts, " r ".edited_by, " r ".deleted, " r ".counted, " r ".reply_count, " r           \
      ".latest_reply, " r ".reply_users, " r ".root_body, " r ".reply_users_count"
// Goes after a FROM with events `e` of `channel`, and adds the message of each event as r, looked
// up one by one: OFFSET 0 keeps the planner from joining them with all of the channel's messages.
#define MESSAGE_OF_EVENT_JOIN(channel)                                                             \
    " LEFT JOIN LATERAL (SELECT * FROM message_rows w WHERE w.channel_id = " channel               \
    " AND w.ts = e.message_ts OFFSET 0) r ON true"

// Reads the columns of message_rows (those after channel_id), beginning at `column`.
void message_read(const struct result *result, int row, int column, struct message *ret_message);

// The columns of thread_rows that message_read_reader() takes; NULL for a reader who has nothing to
// do with the thread.
enum { MESSAGE_READER_COLUMNS = 3 };
#define MESSAGE_READER_SELECT(v) v ".following, " v ".ts, " v ".unread"
// Adds to `message`, a thread's root, the reader's state of the thread.
void message_read_reader(const struct result *result, int row, int column, struct message *message);

// Writes the message object {"type":"message",…}; a deleted one as a tombstone without text.
void message_write(struct json_writer *w, const struct message *message, const char *workspace_id);

// Writes the same members without the braces, for frames that add their own.
void message_write_members(struct json_writer *w, const struct message *message,
                           const char *workspace_id);
