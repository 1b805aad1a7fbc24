// SPDX-License-Identifier: Apache-2.0
// Reads a channel: its history, the replies of a thread, and its events after a seq.
#include "methods.h"

#include "base/check.h"
#include "chat/frame.h"
#include "chat/message.h"
#include "unread/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The caller's state of the thread with root `r`.
#define READER                                                                                     \
    " LEFT JOIN LATERAL (SELECT t.following, t.ts, t.unread FROM thread_rows t WHERE "             \
    "r.reply_count > 0 AND r.thread_ts IS NULL AND t.channel_id = $3 AND t.thread_ts = r.ts AND "  \
    "t.user_id = $2) v ON true"

// Bounds are exclusive: the history between `after` and `before`.
#define HISTORY_SELECT(order)                                                                      \
    "SELECT a.error, " MESSAGE_SELECT("r", "$2") ", " MESSAGE_READER_SELECT(                       \
        "v") ", (SELECT u.unread FROM unread_rows u WHERE $8 AND u.channel_id = $3 AND "           \
             "u.user_id = $2 AND u.strategy_in_use <> 3), (SELECT c.strategy_in_use FROM "         \
             "channels "                                                                           \
             "c WHERE $8 AND c.id = $3), (SELECT pin_count($3)) FROM (SELECT "                     \
             "history_refusal($1, $2, $3, $7) AS error) a "                                        \
             "LEFT JOIN LATERAL (SELECT * "                                                        \
             "FROM message_rows m WHERE a.error IS NULL AND m.channel_id = $3 AND m.ts > $4 AND "  \
             "m.ts < $5 AND NOT m.deleted AND m.subtype IS DISTINCT FROM 'channel_open' AND "      \
             "(m.thread_ts IS NULL OR m.broadcast) ORDER BY " order " LIMIT $6) r ON true" READER  \
             " ORDER BY r.ts DESC"
static const struct statement HISTORY = {"history", HISTORY_SELECT("m.ts DESC")};
static const struct statement HISTORY_UPWARD = {"history_upward", HISTORY_SELECT("m.ts")};
// The root is on every page; its replies are between the bounds.
static const struct statement REPLIES = {
    "replies",
    "SELECT a.error, " MESSAGE_SELECT("r", "$2") ", " MESSAGE_READER_SELECT(
        "v") " FROM (SELECT history_refusal($1, $2, $3, $7) AS error) a LEFT JOIN LATERAL ("
             " (SELECT * FROM message_rows m WHERE a.error IS NULL AND m.channel_id = $3 AND m.ts "
             "= $8 AND (NOT m.deleted OR m.reply_count > 0))"
             " UNION ALL (SELECT * FROM message_rows m WHERE a.error IS NULL AND m.channel_id = $3 "
             "AND m.thread_ts = $8 AND m.ts > $4"
             " AND m.ts < $5 AND NOT m.deleted ORDER BY m.ts LIMIT $6)) r ON true" READER
             " ORDER BY r.ts",
};
enum {
    COLUMN_ERROR,
    COLUMN_MESSAGE,
    COLUMN_UNREAD = COLUMN_MESSAGE + MESSAGE_COLUMNS + MESSAGE_READER_COLUMNS,
    COLUMN_STRATEGY,
    COLUMN_PINS
};
enum {
    HISTORY_DEFAULT = 100,
    HISTORY_MAX = 999,
    REPLIES_DEFAULT = 1000,
    EVENTS_DEFAULT = 100,
    LIST_MAX = 1000,
    PAGE_BYTES_MAX = 32 << 20 // half of the default maximum of a reply
};

#define TS_MAX 9999999999999999

// The requested range, between two exclusive bounds.
struct span {
    uint32_t tag;
    const char *channel_id;
    int64_t after;
    int64_t before;
    int64_t limit;
    int64_t thread_ts; // for replies
    bool upward;       // the page after `after`, rather than the newest page
};

static bool take_bounds(struct invocation *invocation, struct span *span)
{
    int64_t oldest = -1;
    int64_t latest = -1;
    bool inclusive = false;

    if (!take_optional_moment(invocation, "oldest", -ERROR_INVALID_TS_OLDEST, &oldest) ||
        !take_optional_moment(invocation, "latest", -ERROR_INVALID_TS_LATEST, &latest) ||
        !take_optional_bool(invocation, "inclusive", &inclusive))
        return false;
    // Slack's latest=0 and oldest=0 are their defaults.
    span->after = oldest <= 0 ? 0 : oldest - inclusive;
    span->before = latest <= 0 ? TS_MAX + 1 : latest + inclusive;
    span->upward = oldest > 0 && latest <= 0;
    return true;
}

// Reads a cursor, which continues where a page ended.
static bool take_continuation(struct invocation *invocation, const char *kind, int64_t *bound)
{
    const char *text = NULL;

    if (!take_cursor(invocation, kind, &text))
        return false;
    if (!text || ts_parse(text, strlen(text), bound) >= 0)
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_CURSOR,
                            "cursor: must be the next_cursor of an earlier reply");
    return false;
}

static struct span *take_span(struct invocation *invocation, int64_t limit, int64_t limit_max)
{
    struct span *span = TAGGED_NEW(span);

    if (!span) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return NULL;
    }
    invocation->state = span;
    span->limit = limit;
    if (!take_channel(invocation, &span->channel_id) ||
        !take_limit(invocation, limit_max, &span->limit) || !take_bounds(invocation, span))
        return NULL;
    return span;
}

static void span_params(const struct invocation *invocation, struct params *params)
{
    const struct span *span = CAST(span, invocation->state);

    invocation_caller_params(invocation, params);
    params_text(params, span->channel_id);
    params_int(params, span->after);
    params_int(params, span->before);
    params_int(params, span->limit + 1);
    params_bool(params, invocation->actor->type == 'u');
}

static void row_write(struct json_writer *w, const struct invocation *invocation,
                      const struct result *result, int row)
{
    struct message message;

    message_read(result, row, COLUMN_MESSAGE, &message);
    message_read_reader(result, row, COLUMN_MESSAGE + MESSAGE_COLUMNS, &message);
    message_write(w, &message, invocation->actor->workspace_id);
}

// Maximum size of a row in a reply, if all of its text has to be escaped.
static size_t row_size(const struct result *result, int row)
{
    struct message message;

    message_read(result, row, COLUMN_MESSAGE, &message);
    return 6 * message.text_length + message.extra_length + message.notes_length;
}

// How many of `count` rows, from `first` in direction `step`, fit into a page. At least one, unless
// there are none.
static int rows_of_page(const struct result *result, int first, int step, int count)
{
    size_t size = 0;

    for (int i = 0; i < count; i++) {
        size += row_size(result, first + i * step);
        if (size > PAGE_BYTES_MAX && i > 0)
            return i;
    }
    return count;
}

static void page_end(struct json_writer *w, bool has_more, const char *kind, int64_t continue_ts)
{
    char text[TS_SIZE] = "";

    if (has_more)
        ts_print(continue_ts, text);
    json_key_bool(w, "has_more", has_more);
    invocation_write_next_cursor(w, kind, text);
}

static void history_answer(struct invocation *invocation, const struct result *result)
{
    const struct span *span = CAST(span, invocation->state);

    if (!invocation_succeeded(invocation, result))
        return;
    int rows = result_is_null(result, 0, COLUMN_MESSAGE) ? 0 : result_rows(result);
    // A page omits the oldest rows when reading downward, the newest when reading upward.
    int most = rows - (rows > span->limit);
    int count =
        span->upward ? rows_of_page(result, rows - 1, -1, most) : rows_of_page(result, 0, 1, most);
    bool has_more = count < rows;
    int first = span->upward ? rows - count : 0;
    int last = first + count;
    struct json_writer *w = invocation_open(invocation);
    json_key(w, "messages");
    json_open_array(w);
    for (int row = first; row < last; row++)
        row_write(w, invocation, result, row);
    json_close_array(w);
    json_key_int(w, "pin_count", result_int(result, 0, COLUMN_PINS));
    json_key(w, "channel_actions_ts");
    json_none(w);
    json_key_int(w, "channel_actions_count", 0);
    if (!result_is_null(result, 0, COLUMN_UNREAD))
        json_key_int(w, "unread_count_display",
                     unread_display(result_int(result, 0, COLUMN_STRATEGY),
                                    result_int(result, 0, COLUMN_UNREAD)));
    int64_t continue_ts =
        has_more ? result_int(result, span->upward ? first : last - 1, COLUMN_MESSAGE) : 0;
    page_end(w, has_more, span->upward ? "hu1" : "h1", continue_ts);
    invocation_close(invocation);
}

void channels_history(struct invocation *invocation)
{
    struct params params = {0};
    struct span *span = take_span(invocation, HISTORY_DEFAULT, HISTORY_MAX);
    bool with_unreads = false;

    if (!span || !take_optional_bool(invocation, "unreads", &with_unreads))
        return;
    if (!take_continuation(invocation, span->upward ? "hu1" : "h1",
                           span->upward ? &span->after : &span->before))
        return;
    span_params(invocation, &params);
    params_bool(&params, with_unreads);
    invocation_query(invocation, STORE_READ, span->upward ? &HISTORY_UPWARD : &HISTORY, &params,
                     history_answer);
}

static void replies_answer(struct invocation *invocation, const struct result *result)
{
    const struct span *span = CAST(span, invocation->state);

    if (!invocation_succeeded(invocation, result))
        return;
    if (result_is_null(result, 0, COLUMN_MESSAGE)) {
        invocation_fail(invocation, -ERROR_THREAD_NOT_FOUND);
        return;
    }
    // The root is not counted. It is absent if retention has removed it, but not the replies.
    bool has_root = result_int(result, 0, COLUMN_MESSAGE) == span->thread_ts;
    bool has_too_many = result_rows(result) - has_root > span->limit;
    int rows = rows_of_page(result, 0, 1, result_rows(result) - has_too_many);
    bool has_more = rows < result_rows(result);
    struct json_writer *w = invocation_open(invocation);
    json_key(w, "messages");
    json_open_array(w);
    for (int row = 0; row < rows; row++)
        row_write(w, invocation, result, row);
    json_close_array(w);
    page_end(w, has_more, "r1", result_int(result, rows - 1, COLUMN_MESSAGE));
    invocation_close(invocation);
}

void channels_replies(struct invocation *invocation)
{
    struct params params = {0};
    struct span *span = take_span(invocation, REPLIES_DEFAULT, LIST_MAX);

    if (!span || !take_ts(invocation, "ts", -ERROR_INVALID_TIMESTAMP, &span->thread_ts) ||
        !take_continuation(invocation, "r1", &span->after))
        return;
    span_params(invocation, &params);
    params_int(&params, span->thread_ts);
    invocation_query(invocation, STORE_READ, &REPLIES, &params, replies_answer);
}

// The lowest seq that still has an event.
#define OLDEST_SEQ                                                                                 \
    "(SELECT min(seq) FROM ((SELECT m.seq FROM messages m WHERE m.channel_id = $3 ORDER BY m.ts "  \
    "LIMIT 1) UNION ALL SELECT min(seq) FROM changes WHERE channel_id = $3) s)"
#define EVENTS_FROM                                                                                \
    " FROM (SELECT channel_refusal($1, $2, $3) AS error) a"                                        \
    " LEFT JOIN channels c ON c.id = $3 AND a.error IS NULL"                                       \
    " LEFT JOIN channel_heads w ON w.id = c.id"                                                    \
    " LEFT JOIN LATERAL channel_events(c.id, $4, $5::integer) e ON true" MESSAGE_OF_EVENT_JOIN(    \
        "c.id") " ORDER BY e.seq"
static const struct statement EVENTS = {
    "events",
    "SELECT a.error, " MESSAGE_OF_EVENT_SELECT(
        "$2") ", e.seq, e.kind, e.event_ts, e.actor, e.message_ts, "
              "c.type, c.created, e.note, e.note_data, w.seq, " OLDEST_SEQ EVENTS_FROM,
};
enum {
    COLUMN_SEQ = COLUMN_MESSAGE + MESSAGE_COLUMNS,
    COLUMN_KIND,
    COLUMN_EVENT_TS,
    COLUMN_ACTOR,
    COLUMN_MESSAGE_TS,
    COLUMN_TYPE,
    COLUMN_CREATED,
    COLUMN_NOTE,
    COLUMN_NOTE_DATA,
    COLUMN_HEAD_SEQ,
    COLUMN_OLDEST_SEQ
};

static void event_write(struct json_writer *w, const struct invocation *invocation,
                        const struct result *result, int row)
{
    struct message message;
    enum event_kind kind = EVENT_POST;
    struct frame_context context = {
        .workspace_id = invocation->actor->workspace_id,
        .channel_id = request_arg(invocation->request, "channel"),
        .type = channel_type_of(result_int(result, row, COLUMN_TYPE)),
        .seq = result_int(result, row, COLUMN_SEQ),
        .event_ts = result_int(result, row, COLUMN_EVENT_TS),
        .actor = result_text(result, row, COLUMN_ACTOR),
        .created = result_int(result, row, COLUMN_CREATED),
        .note = result_text(result, row, COLUMN_NOTE),
        .note_data = result_text(result, row, COLUMN_NOTE_DATA),
        .note_data_length = result_length(result, row, COLUMN_NOTE_DATA),
    };

    if (event_kind_parse(result_text(result, row, COLUMN_KIND), &kind) < 0)
        return;
    message_read(result, row, COLUMN_MESSAGE, &message);
    if (kind != EVENT_NOTE && result_is_null(result, row, COLUMN_MESSAGE)) { // removed by retention
        kind = EVENT_DELETE;
        message.ts = result_int(result, row, COLUMN_MESSAGE_TS);
    }
    if (w->comma)
        buffer_append_byte(w->out, ',');
    frame_write(w->out, kind, &context, &message);
    w->comma = true;
}

struct event_span {
    uint32_t tag;
    int64_t after_seq;
    int64_t limit;
};

static void events_answer(struct invocation *invocation, const struct result *result)
{
    const struct event_span *span = CAST(event_span, invocation->state);

    if (!invocation_succeeded(invocation, result))
        return;
    int rows = result_is_null(result, 0, COLUMN_SEQ) ? 0 : result_rows(result);
    int64_t head_seq = result_int(result, 0, COLUMN_HEAD_SEQ);
    int count = rows_of_page(result, 0, 1, rows - (rows > span->limit));
    bool has_more = rows > count;
    rows = count;
    int64_t through_seq = rows > 0 ? result_int(result, rows - 1, COLUMN_SEQ) : head_seq;
    struct json_writer *w = invocation_open(invocation);
    json_key(w, "events");
    json_open_array(w);
    for (int row = 0; row < rows; row++)
        event_write(w, invocation, result, row);
    json_close_array(w);
    json_key_int(w, "through_seq", through_seq);
    json_key_bool(w, "has_more", has_more);
    if (span->after_seq + 1 < result_int(result, 0, COLUMN_OLDEST_SEQ))
        json_key_bool(w, "truncated", true); // retention has removed some
    invocation_close(invocation);
}

void channels_events(struct invocation *invocation)
{
    struct event_span *span = TAGGED_NEW(event_span);
    struct params params = {0};
    const char *channel_id;
    const char *after_seq;

    if (!span) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    invocation->state = span;
    span->limit = EVENTS_DEFAULT;
    if (!take_channel(invocation, &channel_id) || !take_text(invocation, "after_seq", &after_seq) ||
        !take_optional_int(invocation, "after_seq", -ERROR_INVALID_ARGUMENTS, 0, INT64_MAX / 2,
                           &span->after_seq) ||
        !take_limit(invocation, LIST_MAX, &span->limit))
        return;
    invocation_caller_params(invocation, &params);
    params_text(&params, channel_id);
    params_int(&params, span->after_seq);
    params_int(&params, span->limit + 1);
    invocation_query(invocation, STORE_READ, &EVENTS, &params, events_answer);
}
