// SPDX-License-Identifier: Apache-2.0
// Reads a member's unread state of a channel from a row and writes it as JSON.
#include "unread/view.h"

#include "base/check.h"
#include "events/event_type.h"

#include <stdio.h>
#include <string.h>

enum { FRAME_MAX_BYTES = 4096 };

#define COPY(field, text) snprintf(field, sizeof(field), "%s", text)

void unread_view_read(const struct result *result, int row, int column,
                      struct unread_view *ret_view)
{
    int c = column;

    *ret_view = (struct unread_view){
        .member = {.epoch = result_int(result, row, c + 3),
                   .ts = result_int(result, row, c + 4),
                   .seq = result_int(result, row, c + 5),
                   .ord = result_int(result, row, c + 6),
                   .own = result_int(result, row, c + 7),
                   .posts = result_int(result, row, c + 8),
                   .member_seq = result_int(result, row, c + 9),
                   .active = result_bool(result, row, c + 14)},
        .muted = result_bool(result, row, c + 10),
        .head = {.seq = result_int(result, row, c + 11), .ord = result_int(result, row, c + 12)},
        .unread = result_int(result, row, c + 13),
        .type = channel_type_of(result_int(result, row, c + 15)),
        .oldest_ts = result_int(result, row, c + 16),
        .mentions = result_int(result, row, c + 17),
    };
    ret_view->head.strategy = result_int(result, row, c + 18);
    ret_view->head.generation = result_int(result, row, c + 19);
    ret_view->member.number = result_int(result, row, c + 20);
    ret_view->member.single_version = result_int(result, row, c + 21);
    ret_view->notify = result_int(result, row, c + 22);
    COPY(ret_view->channel_id, result_text(result, row, c));
    COPY(ret_view->user_id, result_text(result, row, c + 1));
    COPY(ret_view->workspace_id, result_text(result, row, c + 2));
}

int64_t unread_view_count(const struct unread_view *view, int64_t deleted)
{
    const struct event_member *member = &view->member;
    int64_t unread = view->head.ord - member->ord - (member->posts - member->own) - deleted;

    return unread > 0 ? unread : 0;
}

// Every message of a direct conversation counts as a mention, unless it is muted.
static int64_t mentions_of(const struct unread_view *view)
{
    return channel_type_is_direct(view->type) && !view->muted ? view->unread : view->mentions;
}

static int64_t cap_shown = 100;

void unread_cap_set(int64_t cap)
{
    cap_shown = cap;
}

int64_t unread_cap(void)
{
    return cap_shown;
}

int64_t unread_shown(int64_t strategy, int64_t unread)
{
    if (strategy == STRATEGY_BITMAP)
        return 0;
    return strategy == STRATEGY_ZSET && unread > cap_shown ? cap_shown : unread;
}

static int64_t display_max = 100;

void unread_display_max_set(int64_t max)
{
    display_max = max;
}

int64_t unread_display(int64_t strategy, int64_t unread)
{
    int64_t shown = unread_shown(strategy, unread);

    return display_max > 0 && shown > display_max ? display_max : shown;
}

bool unread_differs(int64_t strategy, int64_t one, int64_t other)
{
    bool capped = strategy == STRATEGY_ZSET && one > cap_shown && other > cap_shown;

    return strategy == STRATEGY_BITMAP ? (one > 0) != (other > 0) : one != other && !capped;
}

void unread_counts_write(struct json_writer *w, int64_t strategy, int64_t unread, int64_t mentions)
{
    int64_t shown = unread_shown(strategy, unread);

    json_key_bool(w, "has_unreads", unread > 0);
    if (strategy != STRATEGY_BITMAP) {
        json_key_int(w, "unread_count", shown);
        json_key_int(w, "unread_count_display", unread_display(strategy, unread));
    }
    json_key_bool(w, "unread_capped", strategy == STRATEGY_ZSET && shown < unread);
    json_key_int(w, "mention_count", mentions);
}

void unread_settings_write(struct json_writer *w, bool muted, int64_t notify)
{
    static const char *const words[] = {"default", "all", "mentions", "none"};

    ASSERT(notify >= 0 && notify < (int64_t)(sizeof words / sizeof words[0]));
    json_key_bool(w, "is_muted", muted);
    json_key_string(w, "notify", words[notify]);
}

void unread_view_write_fields(struct json_writer *w, const struct unread_view *view)
{
    json_key_ts(w, "last_read", view->member.ts);
    json_key_int(w, "read_epoch", view->member.epoch);
    unread_counts_write(w, view->head.strategy, view->unread, mentions_of(view));
    if (view->unread > 0 && view->oldest_ts > 0)
        json_key_ts(w, "oldest_unread_ts", view->oldest_ts);
    unread_settings_write(w, view->muted, view->notify);
}

void unread_view_write(struct json_writer *w, const struct unread_view *view)
{
    json_key_string(w, "channel", view->channel_id);
    unread_view_write_fields(w, view);
}

void unread_frame_write(struct buffer *out, enum unread_frame type, const struct unread_view *view,
                        int64_t event_ts)
{
    struct json_writer w = json_writer_to(out);
    bool marked = type == UNREAD_FRAME_MARKED;

    json_open_object(&w);
    json_key_string(&w, "type", event_type_of_mark(view->type, !marked));
    unread_view_write(&w, view);
    json_key_ts(&w, "event_ts", event_ts);
    if (marked) {
        json_key_ts(&w, "ts", view->member.ts);
        json_key_int(&w, "num_mentions", mentions_of(view));
        json_key_int(&w, "num_mentions_display", mentions_of(view));
        json_key_int(&w, "mention_count_display", mentions_of(view));
        if (view->type == CHANNEL_IM)
            json_key_int(&w, "dm_count", view->unread);
    }
    json_close_object(&w);
}

struct event *unread_mark_event(enum unread_frame type, const struct unread_view *view,
                                int64_t event_ts)
{
    struct buffer frame;

    buffer_init(&frame, FRAME_MAX_BYTES);
    unread_frame_write(&frame, type, view, event_ts);
    struct event *event = event_take_frame(EVENT_MARK, &frame);
    if (!event)
        return NULL;
    COPY(event->workspace_id, view->workspace_id);
    COPY(event->channel_id, view->channel_id);
    COPY(event->user_id, view->user_id);
    event->is_private = view->type != CHANNEL_PUBLIC;
    event->channel_type = view->type;
    event->unread_only = type == UNREAD_FRAME_CHANGED;
    event->event_ts = event_ts;
    event->ts = view->member.ts;
    event->member = view->member;
    if (event->member.number < 0) // the wire format has no "none"
        event->member.number = 0;
    return event;
}
