// SPDX-License-Identifier: Apache-2.0
// Reads an outbox row back from Postgres and rebuilds its events.
#include "fanout/load.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"
#include "chat/frame.h"
#include "unread/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct statement OUTBOX_EVENTS = {"outbox_events",
                                               "SELECT * FROM outbox_events(ARRAY[$1])"};
// All of a row in one statement: markAll writes rows of 500 channels.
static const struct statement MEMBER_VIEWS = {
    "member_views",
    "SELECT " UNREAD_VIEW_SELECT(
        "r") " FROM unnest($1, $2) WITH ORDINALITY AS a (channel, member, place)"
             " CROSS JOIN LATERAL (SELECT * FROM unread_rows w WHERE w.channel_id = a.channel"
             " AND w.user_id = a.member OFFSET 0) r ORDER BY a.place"};

static const struct statement THREAD_EVENT = {
    "thread_event", "SELECT workspace_id, is_private, cursor_ts, is_followed, members"
                    " FROM thread_event($1, $2, $3)"};

// The columns of outbox_events().
enum {
    COLUMN_OUTBOX_ID,
    COLUMN_KIND,
    COLUMN_CHANNEL,
    COLUMN_WORKSPACE,
    COLUMN_SEQ,
    COLUMN_EVENT_TS,
    COLUMN_ABOUT,
    COLUMN_PREVIOUS,
    COLUMN_PREVIOUS_EXTRA,
    COLUMN_NAME,
    COLUMN_TYPE,
    COLUMN_CREATOR,
    COLUMN_CREATED,
    COLUMN_HEAD_SEQ,
    COLUMN_HEAD_ORD,
    COLUMN_EPOCH,
    COLUMN_CURSOR_TS,
    COLUMN_CURSOR_SEQ,
    COLUMN_CURSOR_ORD,
    COLUMN_OWN,
    COLUMN_POSTS,
    COLUMN_MEMBER_SEQ,
    COLUMN_ACTIVE,
    COLUMN_STRATEGY,
    COLUMN_GENERATION,
    COLUMN_NUMBER,
    COLUMN_NOTE,
    COLUMN_NOTE_DATA,
    COLUMN_MESSAGE,
    COLUMN_THREAD = COLUMN_EVENT_TS, // if the event has no message
};

enum { FRAME_MAX_BYTES = 8 * 1024 * 1024 };

#define COPY(field, column) snprintf(field, sizeof(field), "%s", result_text(result, row, column))

static void created_write(struct buffer *out, const struct result *result, int row)
{
    const struct frame_channel channel = {
        .id = result_text(result, row, COLUMN_CHANNEL),
        .name = result_text(result, row, COLUMN_NAME),
        .is_private = result_int(result, row, COLUMN_TYPE) != CHANNEL_PUBLIC,
        .creator = result_text(result, row, COLUMN_CREATOR),
        .created = result_int(result, row, COLUMN_CREATED),
    };

    frame_write_created(out, &channel);
}

static void channel_frame_write(struct buffer *out, enum event_kind kind,
                                const struct result *result, int row)
{
    bool changed = kind == EVENT_EDIT || kind == EVENT_DELETE;
    struct frame_context context = {
        .workspace_id = result_text(result, row, COLUMN_WORKSPACE),
        .channel_id = result_text(result, row, COLUMN_CHANNEL),
        .type = channel_type_of(result_int(result, row, COLUMN_TYPE)),
        .seq = result_int(result, row, COLUMN_SEQ),
        .event_ts = result_int(result, row, COLUMN_EVENT_TS),
        .actor = result_text(result, row, COLUMN_ABOUT),
        .created = result_int(result, row, COLUMN_CREATED),
        .previous_text = changed && !result_is_null(result, row, COLUMN_PREVIOUS)
                             ? result_text(result, row, COLUMN_PREVIOUS)
                             : NULL,
        .previous_length = result_length(result, row, COLUMN_PREVIOUS),
        .previous_extra = result_text(result, row, COLUMN_PREVIOUS_EXTRA),
        .previous_extra_length = result_length(result, row, COLUMN_PREVIOUS_EXTRA),
        .note = result_text(result, row, COLUMN_NOTE),
        .note_data = result_text(result, row, COLUMN_NOTE_DATA),
        .note_data_length = result_length(result, row, COLUMN_NOTE_DATA),
    };
    struct message message;

    message_read(result, row, COLUMN_MESSAGE, &message);
    frame_write(out, kind, &context, &message);
}

static struct event *event_begin(enum event_kind kind, const struct result *result, int row)
{
    struct buffer frame;

    buffer_init(&frame, FRAME_MAX_BYTES);
    if (kind == EVENT_CREATED)
        created_write(&frame, result, row);
    else
        channel_frame_write(&frame, kind, result, row);
    return event_take_frame(kind, &frame);
}

static void member_read(struct event_member *member, const struct result *result, int row)
{
    int64_t number = result_int(result, row, COLUMN_NUMBER); // -1: reused for another member

    *member = (struct event_member){
        .epoch = result_int(result, row, COLUMN_EPOCH),
        .ts = result_int(result, row, COLUMN_CURSOR_TS),
        .seq = result_int(result, row, COLUMN_CURSOR_SEQ),
        .ord = result_int(result, row, COLUMN_CURSOR_ORD),
        .own = result_int(result, row, COLUMN_OWN),
        .posts = result_int(result, row, COLUMN_POSTS),
        .member_seq = result_int(result, row, COLUMN_MEMBER_SEQ),
        .number = number < 0 ? 0 : number,
        .active = result_bool(result, row, COLUMN_ACTIVE),
    };
}

static void head_read(struct event_head *head, const struct result *result, int row)
{
    *head = (struct event_head){.seq = result_int(result, row, COLUMN_HEAD_SEQ),
                                .ord = result_int(result, row, COLUMN_HEAD_ORD),
                                .strategy = result_int(result, row, COLUMN_STRATEGY),
                                .generation = result_int(result, row, COLUMN_GENERATION)};
}

// Builds the event of one row, of any kind except marks. Returns 1, like all functions that load
// one event.
static int channel_event_load(enum event_kind kind, const struct result *result, int row,
                              struct event **ret_event)
{
    struct event *event = event_begin(kind, result, row);
    struct message message;

    if (!event)
        return -ERROR_MEMORY;
    message_read(result, row, COLUMN_MESSAGE, &message);
    event->channel_type = channel_type_of(result_int(result, row, COLUMN_TYPE));
    event->is_private = event->channel_type != CHANNEL_PUBLIC;
    event->counted = message.counted && kind == EVENT_POST;
    COPY(event->workspace_id, COLUMN_WORKSPACE);
    COPY(event->channel_id, COLUMN_CHANNEL);
    COPY(event->user_id, COLUMN_ABOUT);
    COPY(event->note, COLUMN_NOTE);
    event->seq = result_int(result, row, COLUMN_SEQ);
    event->event_ts = result_int(result, row, COLUMN_EVENT_TS);
    event->ts = message.ts;
    head_read(&event->head, result, row);
    if (kind == EVENT_JOIN || kind == EVENT_LEAVE)
        member_read(&event->member, result, row);
    if (kind == EVENT_DELETE && message.counted) {
        event->deleted_ord = message.ord;
        snprintf(event->deleted_user, sizeof event->deleted_user, "%s", message.user_id);
    }
    *ret_event = event;
    return 1;
}

// Whether the event carries one member's unread state, and in which frame.
static bool is_of_member(const struct result *outbox, int row, enum unread_frame *ret_type)
{
    const char *kind = result_text(outbox, row, COLUMN_KIND);
    bool is_preference = strcmp(kind, "preference") == 0;

    if (!is_preference && strcmp(kind, event_kind_name(EVENT_MARK)) != 0)
        return false;
    *ret_type = is_preference ? UNREAD_FRAME_CHANGED : UNREAD_FRAME_MARKED;
    return true;
}

static int member_column_add(struct params *params, const struct result *outbox, int column)
{
    enum unread_frame type;
    int count = 0;

    params_open_text_array(params);
    for (int row = 0; row < result_rows(outbox); row++) {
        if (!is_of_member(outbox, row, &type))
            continue;
        params_element_text_n(params, result_text(outbox, row, column),
                              result_length(outbox, row, column));
        count++;
    }
    params_close_array(params);
    return count;
}

// Reads members' current unread state: one row per event of that kind, in order. NULL: there are no
// such events.
static int member_views_load(struct session *session, const struct result *outbox,
                             struct result **ret_views)
{
    struct params params = {0};
    struct result *views = NULL;
    int count = member_column_add(&params, outbox, COLUMN_CHANNEL);

    member_column_add(&params, outbox, COLUMN_ABOUT);
    if (count == 0) {
        params_done(&params);
        *ret_views = NULL;
        return 0;
    }
    int r = session_call(session, &MEMBER_VIEWS, &params, &views);
    if (r < 0)
        return r;
    if (result_rows(views) != count) { // members' rows are never deleted
        result_free(views);
        return -ERROR_INTERNAL;
    }
    *ret_views = views;
    return 0;
}

static int member_event_load(enum unread_frame type, const struct result *views, int row,
                             struct event **ret_event)
{
    struct unread_view view;

    unread_view_read(views, row, 0, &view);
    *ret_event = unread_mark_event(type, &view, clock_wall_us());
    return *ret_event ? 1 : -ERROR_MEMORY;
}

static struct event *thread_event_read(enum event_kind kind, const struct result *result)
{
    const int row = 0;
    struct buffer frame;

    buffer_init(&frame, FRAME_MAX_BYTES);
    frame_write_thread(&frame, kind, result, row, 3);
    struct event *event = event_take_frame(kind, &frame);
    if (!event)
        return NULL;
    COPY(event->workspace_id, 0);
    event->is_private = result_bool(result, row, 1);
    event->event_ts = clock_wall_us();
    event->member.ts = result_int(result, row, 2);
    event->member.active = result_bool(result, row, 3);
    return event;
}

// Builds an event of one user in one thread, with the thread's current state.
static int thread_event_load(struct session *session, enum event_kind kind,
                             const struct result *outbox, int row, struct event **ret_event)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};

    params_text(&params, result_text(outbox, row, COLUMN_CHANNEL));
    params_int(&params, result_int(outbox, row, COLUMN_THREAD));
    params_text(&params, result_text(outbox, row, COLUMN_ABOUT));
    int r = session_call(session, &THREAD_EVENT, &params, &result);
    if (r < 0)
        return r;
    struct event *event = thread_event_read(kind, result);
    if (!event)
        return -ERROR_MEMORY;
    snprintf(event->channel_id, sizeof event->channel_id, "%s",
             result_text(outbox, row, COLUMN_CHANNEL));
    snprintf(event->user_id, sizeof event->user_id, "%s", result_text(outbox, row, COLUMN_ABOUT));
    event->ts = result_int(outbox, row, COLUMN_THREAD);
    *ret_event = event;
    return 1;
}

// An event without a frame: those who announce the change read what it changed.
static int strategy_event_load(const struct result *result, int row, struct event **ret_event)
{
    char *frame = strdup("{}");
    struct event *event = frame ? event_new(EVENT_STRATEGY, frame, strlen(frame)) : NULL;

    if (!event)
        return -ERROR_MEMORY;
    COPY(event->workspace_id, COLUMN_WORKSPACE);
    COPY(event->channel_id, COLUMN_CHANNEL);
    COPY(event->user_id, COLUMN_ABOUT);
    event->is_private = result_int(result, row, COLUMN_TYPE) != CHANNEL_PUBLIC;
    event->event_ts = clock_wall_us();
    event->ts = result_int(result, row, COLUMN_EVENT_TS);
    head_read(&event->head, result, row);
    *ret_event = event;
    return 1;
}

// The row is of a later release that did not publish it. If it has a seq, sockets detect the gap.
static void unknown_pass_over(const struct result *result, int row)
{
    metric_add(METRIC_EVENTS_UNKNOWN, 1);
    log_write(LOG_WARN, "fanout", "outbox row %s has an event of an unknown kind: %.40s",
              result_text(result, row, COLUMN_OUTBOX_ID), result_text(result, row, COLUMN_KIND));
}

// Loads any kind except those of is_of_member(). Positive: there is an event.
static int row_load(struct session *session, const struct result *result, int row,
                    struct event **ret_event)
{
    enum event_kind kind;

    if (event_kind_parse(result_text(result, row, COLUMN_KIND), &kind) < 0) {
        unknown_pass_over(result, row);
        return 0;
    }
    if (kind == EVENT_STRATEGY)
        return strategy_event_load(result, row, ret_event);
    if (event_kind_is_thread(kind))
        return thread_event_load(session, kind, result, row, ret_event);
    return channel_event_load(kind, result, row, ret_event);
}

// Loads the events of all rows of known kinds, in order.
static int events_load(struct session *session, const struct result *outbox,
                       const struct result *views, struct event **ret_events)
{
    int count = 0;
    int members = 0;
    int r = 0;

    for (int row = 0; r >= 0 && row < result_rows(outbox); row++) {
        enum unread_frame type;
        r = is_of_member(outbox, row, &type)
                ? member_event_load(type, views, members++, &ret_events[count])
                : row_load(session, outbox, row, &ret_events[count]);
        count += r > 0;
    }
    if (r >= 0)
        return count;
    while (count > 0)
        event_unref(ret_events[--count]);
    return r;
}

int load_event(struct session *session, const char *outbox_id, struct event ***ret_events)
{
    CLEANUP_RESULT struct result *result = NULL;
    CLEANUP_RESULT struct result *views = NULL;
    CLEANUP_FREE struct event **events = NULL;
    struct params params = {0};

    params_text(&params, outbox_id);
    int r = session_call(session, &OUTBOX_EVENTS, &params, &result);
    if (r >= 0)
        r = member_views_load(session, result, &views);
    if (r < 0 || result_rows(result) == 0)
        return r;
    events = calloc((size_t)result_rows(result), sizeof(struct event *));
    if (!events)
        return -ERROR_MEMORY;
    r = events_load(session, result, views, events);
    if (r > 0)
        *ret_events = TAKE(events);
    return r;
}
