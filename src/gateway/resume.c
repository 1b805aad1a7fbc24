// SPDX-License-Identifier: Apache-2.0
#include "resume.h"

#include "page.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "unread/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_MIN = 4, PAGE_FIRST = 64, PAGE_MAX = 512, FRAME_MAX = 8 << 20, SMALL_FRAME_MAX = 4096 };

// All channels of a user, those left since included; seq_from is where the stream goes on. Without
// a row of its own the position still comes.
const struct statement resume_statement = {
    "gateway_resume",
    "SELECT t.xid, t.seconds, r.* FROM (SELECT pg_snapshot_xmin(s)::text AS xid,"
    " extract(epoch FROM clock_timestamp())::bigint AS seconds"
    " FROM pg_current_snapshot() s) t LEFT JOIN (SELECT c.id, c.seq, m.active, m.member_seq,"
    " CASE WHEN c.changed >= $2::xid8 OR m.changed >= $3::xid8"
    " THEN resume_seq(c.id, m.user_id, m.member_seq, $2::xid8, $3::xid8)"
    " ELSE c.seq END FROM channel_members m JOIN channels c ON c.id = m.channel_id"
    " WHERE m.user_id = $1 AND (m.active OR m.changed >= $3::xid8)) r ON true"};

enum {
    COLUMN_XID,
    COLUMN_SECONDS,
    COLUMN_ID,
    COLUMN_SEQ,
    COLUMN_ACTIVE,
    COLUMN_MEMBER_SEQ,
    COLUMN_FROM,
};

// What the member's state became meanwhile: where the cursor or a preference changed, and the
// counts of the channels of which a delete or an edit was told.
static const struct statement views = {
    "gateway_resume_views",
    "SELECT u.member_changed >= $2::xid8 AND " MEMBER_IS_MARKED("u") ", " UNREAD_VIEW_SELECT(
        "u") " FROM unread_rows u WHERE u.user_id = $1 AND u.active"
             " AND (u.member_changed >= $2::xid8 OR u.channel_id = ANY ($3))"};

// What is no event of a channel that one is in: followed or marked threads, as frames, and channels
// that were made.
static const struct statement others = {
    "gateway_resume_others",
    "(SELECT e.frame, '', '', false, '', 0::bigint FROM thread_members m"
    " CROSS JOIN unnest(ARRAY['thread_follow', 'thread_mark']) AS k (kind)"
    " CROSS JOIN LATERAL thread_event(m.channel_id, m.thread_ts, m.user_id, k.kind) e"
    " WHERE m.user_id = $1 AND m.changed >= $2::xid8 AND EXISTS (SELECT 1 FROM channel_members x"
    " WHERE x.channel_id = m.channel_id AND x.user_id = $1 AND x.active))"
    " UNION ALL (SELECT NULL, c.id, c.name, c.is_private, c.creator, c.created FROM channels c"
    " WHERE c.workspace_id = $3 AND c.made >= $2::xid8 AND (NOT c.is_private OR c.creator = $1)"
    " ORDER BY c.made)"};

// A channel of which events are to be read.
struct behind {
    char channel_id[EVENT_ID_SIZE];
    int64_t at_seq;  // all up to it was sent
    int64_t to_seq;  // of the leave, when the user is no member any more; else INT64_MAX
    bool is_away;    // read up to a leave of the user's, and not yet to the next join
    bool has_change; // a delete or an edit was told
};

struct resume {
    struct connection *connection; // NULL once it is gone
    struct gateway *gateway;
    struct behind *behind;
    int count;
    int next; // the one being read
    int page; // how many of its events are asked for at once: about as many as there is room for
    bool is_asked;
    bool asked_seated;      // when the page was asked for, the connection sat in its stream
    int64_t asked_sent_seq; // which had sent so much
};

void resume_params(const struct connection *c, struct params *params)
{
    bool resumes = c->sse->since.xid > 0;
    params_xid(params, resumes ? c->sse->since.xid : INT64_MAX);
    params_xid(params, resumes ? c->sse->since.heard_xid : INT64_MAX);
}

bool resume_is_too_old(const struct connection *c, const struct result *result)
{
    const struct position *since = &c->sse->since;
    int64_t age_s = result_int(result, 0, COLUMN_SECONDS) - since->seconds;
    return since->xid > 0 && (age_s > c->gateway->options.resume_max_s ||
                              !store_era_holds(c->gateway->store, since->era, since->xid));
}

void resume_free(struct connection *c)
{
    struct resume *resume = TAKE(c->sse->resume);
    if (!resume)
        return;
    resume->connection = NULL;
    if (resume->is_asked)
        return; // freed with the answer
    free(resume->behind);
    free(resume);
}

static void behind_add(struct resume *resume, const char *channel_id, int64_t at_seq,
                       int64_t to_seq)
{
    struct behind *behind = &resume->behind[resume->count++];
    snprintf(behind->channel_id, sizeof behind->channel_id, "%s", channel_id);
    behind->at_seq = at_seq;
    behind->to_seq = to_seq;
}

// A seat that is behind gets nothing until it has caught up.
static int channel_enter(struct connection *c, const struct result *result, int row, bool resumes)
{
    const char *id = result_text(result, row, COLUMN_ID);
    int64_t seq = result_int(result, row, COLUMN_SEQ);
    int64_t from_seq = resumes ? result_int(result, row, COLUMN_FROM) : seq;
    int64_t member_seq = result_int(result, row, COLUMN_MEMBER_SEQ);
    if (!result_bool(result, row, COLUMN_ACTIVE)) {
        if (resumes && from_seq < member_seq)
            behind_add(c->sse->resume, id, from_seq, member_seq);
        return 0;
    }
    struct stream *stream = stream_follow(c->gateway, c->actor.workspace_id, id, seq);
    if (!stream)
        return -ERROR_MEMORY;
    bool is_behind = resumes && from_seq < stream->sent_seq;
    int r = stream_enter(stream, c, seq, is_behind ? INT64_MAX : from_seq);
    if (r >= 0 && is_behind)
        behind_add(c->sse->resume, id, from_seq, INT64_MAX);
    return r;
}

int resume_begin(struct connection *c, const struct result *result)
{
    struct sse *sse = c->sse;
    bool resumes = sse->since.xid > 0;
    struct resume *resume = resumes ? calloc(1, sizeof *resume) : NULL;
    if (resume) {
        resume->connection = c;
        resume->gateway = c->gateway;
        resume->page = PAGE_FIRST;
        resume->behind = calloc((size_t)result_rows(result), sizeof *resume->behind);
        sse->resume = resume;
    }
    if (resumes && (!resume || !resume->behind))
        return -ERROR_MEMORY;
    int64_t xid = result_int(result, 0, COLUMN_XID);
    struct position now = {xid, xid, result_int(result, 0, COLUMN_SECONDS),
                           store_era(c->gateway->store).number};
    position_print(resumes ? &sse->since : &now, sse->id);
    int r = user_enter(c);
    for (int row = 0; r >= 0 && row < result_rows(result); row++)
        if (!result_is_null(result, row, COLUMN_ID))
            r = channel_enter(c, result, row, resumes);
    return r;
}

bool resume_joined(struct connection *c, const struct stream *stream)
{
    struct resume *resume = c->sse ? c->sse->resume : NULL;
    for (int i = resume ? resume->next : 0; resume && i < resume->count; i++) {
        if (strcmp(resume->behind[i].channel_id, stream->channel_id) != 0)
            continue;
        resume->behind[i].to_seq = INT64_MAX;
        return true;
    }
    return false;
}

// Frames of the present need some, too.
static bool has_room(const struct connection *c)
{
    return outlet_unsent(&c->outlet) <= (size_t)c->gateway->options.queue_max_bytes / 4;
}

static struct seat *seat_find(struct connection *c, const struct stream *stream)
{
    for (uint32_t i = 0; i < c->follow_count; i++)
        if (c->follows[i].stream == stream)
            return &c->follows[i].stream->seats[c->follows[i].seat];
    return NULL;
}

static void gap_tell(struct connection *c, struct behind *behind, int64_t to_seq)
{
    CLEANUP(buffer_done) struct buffer out;
    buffer_init(&out, SMALL_FRAME_MAX);
    stream_gap_write(behind->channel_id, behind->at_seq + 1, to_seq, &out);
    if (!buffer_failed(&out))
        connection_send_text(c, out.data, out.length);
    metric_add(METRIC_GAPS_TOLD, 1);
    behind->at_seq = to_seq;
}

static void row_tell(struct connection *c, struct behind *behind, const struct page_row *row)
{
    CLEANUP(buffer_done) struct buffer frame;
    buffer_init(&frame, FRAME_MAX);
    if (row->seq > behind->at_seq + 1) // dropped by retention
        gap_tell(c, behind, row->seq - 1);
    page_frame_write(row, c->actor.workspace_id, behind->channel_id, &frame);
    if (buffer_failed(&frame)) {
        gap_tell(c, behind, row->seq);
        return;
    }
    connection_send_text(c, frame.data, frame.length);
    metric_add(METRIC_EVENTS_RESUMED, 1);
    behind->at_seq = row->seq;
    if (row->kind == EVENT_DELETE || row->kind == EVENT_EDIT)
        behind->has_change = true;
}

// Whether the user was in the channel when it happened; joins and leaves of one's own are told.
static bool row_is_for(struct behind *behind, const struct page_row *row, const char *user_id)
{
    bool own = strcmp(row->actor, user_id) == 0;
    if (own && row->kind == EVENT_JOIN)
        behind->is_away = false;
    bool is_for = !behind->is_away;
    if (own && row->kind == EVENT_LEAVE)
        behind->is_away = true;
    return is_for;
}

// What comes behind the last leave is not for this connection, unless it still, or again, sits
// there. False when rows were left for want of room.
static bool rows_tell(struct connection *c, struct behind *behind, const struct seat *seat,
                      const struct result *result)
{
    for (int i = 0; i < result_rows(result) && behind->at_seq < behind->to_seq; i++) {
        struct page_row row;
        if (page_row_read(result, i, &row) < 0 || row.seq <= behind->at_seq)
            continue;
        if (!has_room(c)) {
            c->sse->resume->page = i > PAGE_MIN ? i : PAGE_MIN;
            return false;
        }
        if (row_is_for(behind, &row, c->actor.user_id))
            row_tell(c, behind, &row);
        behind->at_seq = row.seq;
        if (behind->is_away && !seat && behind->to_seq == INT64_MAX)
            behind->to_seq = row.seq;
    }
    return true;
}

// Whether the channel needs no other page; its seat then gets what comes next.
static bool behind_take(struct connection *c, struct behind *behind, const struct result *result)
{
    struct stream *stream = stream_find(c->gateway, behind->channel_id);
    struct seat *seat = stream ? seat_find(c, stream) : NULL;
    int64_t asked_sent_seq = c->sse->resume->asked_sent_seq;
    bool last_page = result_rows(result) < c->sse->resume->page;
    if (!rows_tell(c, behind, seat, result))
        return false;
    if (!last_page && c->sse->resume->page < PAGE_MAX)
        c->sse->resume->page *= 2;
    if (behind->at_seq >= behind->to_seq)
        return true;
    if (!seat) // the leave is read, or never was there
        return last_page && !c->sse->resume->asked_seated;
    if (last_page && behind->at_seq < asked_sent_seq)
        gap_tell(c, behind, asked_sent_seq);
    if (behind->at_seq < stream->sent_seq)
        return false;
    seat->from_seq = behind->at_seq;
    return true;
}

static void view_tell(struct connection *c, const struct result *result, int row)
{
    CLEANUP(buffer_done) struct buffer out;
    struct unread_view view;
    unread_view_read(result, row, 1, &view);
    buffer_init(&out, SMALL_FRAME_MAX);
    unread_frame_write(&out, result_bool(result, row, 0) ? "channel_marked" : "unread_changed",
                       &view, clock_wall_us());
    if (!buffer_failed(&out))
        connection_send_text(c, out.data, out.length);
}

// The connection that an answer is for; NULL when it is gone, and with it the resume.
static struct connection *resume_answer(struct resume *resume)
{
    bool alive = gateway_answer(resume->gateway);
    resume->is_asked = false;
    if (alive && resume->connection)
        return resume->connection;
    free(resume->behind);
    free(resume);
    return NULL;
}

static void other_tell(struct connection *c, const struct result *result, int row)
{
    CLEANUP(buffer_done) struct buffer out;
    buffer_init(&out, SMALL_FRAME_MAX);
    if (result_is_null(result, row, 0))
        created_write(result, row, &out);
    else
        buffer_append(&out, result_text(result, row, 0), result_length(result, row, 0));
    if (!buffer_failed(&out))
        connection_send_text(c, out.data, out.length);
}

typedef void row_fn(struct connection *c, const struct result *result, int row);

// Tells every row of an answer; when there is no room for all, that something is missing. The
// connection when it goes on; NULL when it is gone or goes.
static struct connection *resume_tell(struct resume *resume, const struct store_outcome *outcome,
                                      row_fn *tell)
{
    struct connection *c = resume_answer(resume);
    if (!c)
        return NULL;
    if (outcome->r < 0) {
        connection_doom(c, CLOSE_RESTART, "try again");
        return NULL;
    }
    for (int row = 0; row < result_rows(outcome->result); row++) {
        if (!has_room(c)) {
            sse_tell_gap(c);
            break;
        }
        tell(c, outcome->result, row);
    }
    return c;
}

static void on_others(void *arg, const struct store_outcome *outcome)
{
    struct connection *c = resume_tell(arg, outcome, other_tell);
    if (!c)
        return;
    resume_free(c);
    sse_settle(c);
}

static void others_ask(struct resume *resume)
{
    CLEANUP_PARAMS struct params params = {0};
    const struct connection *c = resume->connection;
    params_text(&params, c->actor.user_id);
    params_xid(&params, c->sse->since.heard_xid);
    params_text(&params, c->actor.workspace_id);
    gateway_ask(resume->gateway);
    resume->is_asked = true;
    store_call(resume->gateway->store, STORE_SYNC, &others, &params, on_others, resume);
}

static void on_views(void *arg, const struct store_outcome *outcome)
{
    const struct connection *c = resume_tell(arg, outcome, view_tell);
    if (c && c->state == CONNECTION_OPEN)
        others_ask(c->sse->resume);
}

static void views_ask(struct resume *resume)
{
    CLEANUP_PARAMS struct params params = {0};
    const struct connection *c = resume->connection;
    params_text(&params, c->actor.user_id);
    params_xid(&params, c->sse->since.heard_xid);
    params_open_text_array(&params);
    for (int i = 0; i < resume->count; i++)
        if (resume->behind[i].has_change)
            params_element_text(&params, resume->behind[i].channel_id);
    params_close_array(&params);
    gateway_ask(resume->gateway);
    resume->is_asked = true;
    store_call(resume->gateway->store, STORE_SYNC, &views, &params, on_views, resume);
}

static void on_page(void *arg, const struct store_outcome *outcome)
{
    struct resume *resume = arg;
    struct connection *c = resume_answer(resume);
    if (!c)
        return;
    if (outcome->r < 0) {
        connection_doom(c, CLOSE_RESTART, "try again");
        return;
    }
    if (behind_take(c, &resume->behind[resume->next], outcome->result)) {
        resume->next++;
        resume->page = PAGE_FIRST;
    }
    resume_go_on(c);
}

// More than may be read is told of as a gap.
static void behind_ask(struct connection *c, struct resume *resume)
{
    struct behind *behind = &resume->behind[resume->next];
    const struct stream *stream = stream_find(c->gateway, behind->channel_id);
    int64_t to_seq = behind->to_seq;
    if (stream && stream->sent_seq < to_seq)
        to_seq = stream->sent_seq;
    if (to_seq != INT64_MAX && to_seq - behind->at_seq > c->gateway->options.resume_max_events)
        gap_tell(c, behind, to_seq - 1); // the page then ends it
    resume->asked_seated = stream && seat_find(c, stream);
    resume->asked_sent_seq = to_seq;
    resume->is_asked = true;
    gateway_ask(resume->gateway);
    page_ask(c->gateway, behind->channel_id, behind->at_seq, resume->page, on_page, resume);
}

void resume_go_on(struct connection *c)
{
    struct resume *resume = c->sse->resume;
    if (!resume || resume->is_asked || c->state != CONNECTION_OPEN || !has_room(c))
        return;
    if (resume->next < resume->count)
        behind_ask(c, resume);
    else
        views_ask(resume);
}
