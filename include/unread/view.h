// SPDX-License-Identifier: Apache-2.0
// A member's unread state in a channel, as read from Postgres (the SQL view unread_rows) and as
// sent to clients: the members common to all replies about read state, called R below.
#pragma once

#include "base/channel.h"
#include "base/json_writer.h"
#include "events/event.h"
#include "store/statement.h"

// A plain value.
struct unread_view {
    char channel_id[EVENT_ID_SIZE];
    char user_id[EVENT_ID_SIZE];
    char workspace_id[EVENT_ID_SIZE];
    struct event_member member;
    struct event_head head;
    int64_t unread;
    int64_t oldest_ts; // ts of the oldest unread message; 0: none
    int64_t singles;   // individually read messages (read_messages); set by channels.info only
    int64_t mentions;  // unread messages that mention the user
    bool muted;
    int64_t notify; // which messages are pushed: default, all, mentions, none
    enum channel_type type;
};

enum { UNREAD_VIEW_COLUMNS = 23 };
// SELECT list of unread_rows, in the order unread_view_read() expects.
#define UNREAD_VIEW_SELECT(r)                                                                      \
    r ".channel_id, " r ".user_id, " r ".workspace_id, " r ".epoch, " r ".ts, " r ".seq, " r       \
      ".ord, " r ".own, " r ".posts, " r ".member_seq, " r ".muted, " r ".head_seq, " r            \
      ".head_ord, " r ".unread, " r ".active, " r ".type, " r ".oldest, " r ".mentions, " r        \
      ".strategy_in_use, " r ".generation, " r ".number, " r ".single_version, " r ".notify"

void unread_view_read(const struct result *result, int row, int column,
                      struct unread_view *ret_view);

// The unread count from the head and member of `view`, if `deleted` posts by others after the
// cursor were deleted.
int64_t unread_view_count(const struct unread_view *view, int64_t deleted);

// The zset strategy's cap on counted unread messages. Set once, before threads are started.
void unread_cap_set(int64_t cap);
int64_t unread_cap(void);

// Maximum of unread_count_display; 0: unlimited. Set once, before threads are started.
void unread_display_max_set(int64_t max);

// The count shown to clients: at most the cap under zset, 0 under bitmap.
int64_t unread_shown(int64_t strategy, int64_t unread);

// The count for a badge. With a maximum of 100, clients show 100 as "99+".
int64_t unread_display(int64_t strategy, int64_t unread);

// Whether two unread counts look different to clients.
bool unread_differs(int64_t strategy, int64_t one, int64_t other);

// Writes has_unreads, the counts (none under bitmap) and mention_count.
void unread_counts_write(struct json_writer *w, int64_t strategy, int64_t unread, int64_t mentions);

// Writes is_muted and notify.
void unread_settings_write(struct json_writer *w, bool muted, int64_t notify);

// Writes the members of R.
void unread_view_write(struct json_writer *w, const struct unread_view *view);

// Likewise without "channel", for a channel object. For a user who is not a member, `view` is
// all-zero.
void unread_view_write_fields(struct json_writer *w, const struct unread_view *view);

enum unread_frame {
    UNREAD_FRAME_MARKED, // channel_marked; outside public channels group_marked, mpim_marked or
                         // im_marked
    UNREAD_FRAME_CHANGED // unread_changed, which contains only R
};

// Writes the frame.
void unread_frame_write(struct buffer *out, enum unread_frame type, const struct unread_view *view,
                        int64_t event_ts);

// An EVENT_MARK with that frame. NULL: out of memory.
struct event *unread_mark_event(enum unread_frame type, const struct unread_view *view,
                                int64_t event_ts);
