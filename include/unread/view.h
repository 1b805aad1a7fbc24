// SPDX-License-Identifier: Apache-2.0
// What one member has unread in one channel, as Postgres tells it (the SQL view unread_rows) and as
// clients see it: the members that replies about read state have in common, "R" below.
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
    int64_t oldest_ts; // of the oldest unread message, 0: none
    int64_t singles;   // messages read one by one (read_messages); set by channels.info only
    int64_t mentions;  // how many unread messages mention the user
    bool muted;
    int64_t notify; // which messages are pushed: default, all, mentions, none
    enum channel_type type;
};

enum { UNREAD_VIEW_COLUMNS = 23 };
// The columns of unread_rows that unread_view_read() takes, in its order: for a SELECT list.
#define UNREAD_VIEW_SELECT(r)                                                                      \
    r ".channel_id, " r ".user_id, " r ".workspace_id, " r ".epoch, " r ".ts, " r ".seq, " r       \
      ".ord, " r ".own, " r ".posts, " r ".member_seq, " r ".muted, " r ".head_seq, " r            \
      ".head_ord, " r ".unread, " r ".active, " r ".type, " r ".oldest, " r ".mentions, " r        \
      ".strategy_in_use, " r ".generation, " r ".number, " r ".single_version, " r ".notify"

void unread_view_read(const struct result *result, int row, int column,
                      struct unread_view *ret_view);

// The unread count by the head and member of `view`, if `deleted` posts of others after the cursor
// were deleted.
int64_t unread_view_count(const struct unread_view *view, int64_t deleted);

// The most unread messages that strategy zset counts; set once, before threads are started.
void unread_cap_set(int64_t cap);
int64_t unread_cap(void);

// The most that unread_count_display says, 0: no bound; set once, before threads are started.
void unread_display_max_set(int64_t max);

// The count that clients are shown for `unread` messages: at most the cap under zset, 0 under
// bitmap.
int64_t unread_shown(int64_t strategy, int64_t unread);

// The same for a badge: a client shows "99+" for the most that it says when that is 100.
int64_t unread_display(int64_t strategy, int64_t unread);

// Whether clients are shown different things for two unread counts.
bool unread_differs(int64_t strategy, int64_t one, int64_t other);

// Writes has_unreads, the counts (none under bitmap) and mention_count.
void unread_counts_write(struct json_writer *w, int64_t strategy, int64_t unread, int64_t mentions);

// Writes is_muted and notify.
void unread_wishes_write(struct json_writer *w, bool muted, int64_t notify);

// Writes the members of R.
void unread_view_write(struct json_writer *w, const struct unread_view *view);

// The same without "channel", for a channel object. For a user who is no member `view` is all-zero.
void unread_view_write_fields(struct json_writer *w, const struct unread_view *view);

enum unread_frame {
    UNREAD_FRAME_MARKED, // channel_marked; elsewhere than in public channels group_marked,
                         // mpim_marked or im_marked
    UNREAD_FRAME_CHANGED // unread_changed, which has only R
};

// Writes the frame.
void unread_frame_write(struct buffer *out, enum unread_frame type, const struct unread_view *view,
                        int64_t event_ts);

// An EVENT_MARK with that frame; NULL when there is no memory.
struct event *unread_mark_event(enum unread_frame type, const struct unread_view *view,
                                int64_t event_ts);
