// SPDX-License-Identifier: Apache-2.0
// Frames for sockets, as JSON text: one per event, in Slack's format plus a "seq".
#pragma once

#include "base/channel.h"
#include "chat/message.h"
#include "events/event.h"

struct frame_context {
    const char *workspace_id;
    const char *channel_id;
    enum channel_type type;
    int64_t seq;
    int64_t event_ts;
    const char *actor;         // the user who edited, deleted, joined, left, archived or renamed
    int64_t created;           // creation time of the channel, in seconds; for a rename
    const char *previous_text; // before an edit or delete; NULL: not known
    size_t previous_length;
    const char *previous_extra;
    size_t previous_extra_length;
    const char *note;      // of a note: its type,
    const char *note_data; // and a JSON object, the members of its frame
    size_t note_data_length;
};

// A newly created channel.
struct frame_channel {
    const char *id;
    const char *name;
    bool is_private;
    const char *creator;
    int64_t created; // seconds
};

// Appends the frame `channel_created`.
void frame_write_created(struct buffer *out, const struct frame_channel *channel);

// Appends the frame of an ephemeral message, which only one user receives; it is not an event of
// its channel.
void frame_write_ephemeral(struct buffer *out, const struct frame_context *context,
                           const struct message *message);

// Appends the frame of an event of a user's thread, and returns its type (static text). From
// `column` stand two columns of thread_event() in SQL: is_followed, members.
const char *frame_write_thread(struct buffer *out, enum event_kind kind,
                               const struct result *result, int row, int column);

// Appends the frame of a channel event (every kind except CREATED and MARK).
void frame_write(struct buffer *out, enum event_kind kind, const struct frame_context *context,
                 const struct message *message);
