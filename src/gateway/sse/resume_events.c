// SPDX-License-Identifier: Apache-2.0
// Sends what a resumed event stream missed in a channel, a page at a time.
#include "../connection.h"
#include "../core.h"
#include "../page.h"
#include "../position.h"
#include "../stream.h"
#include "resume.h"
#include "resume_internal.h"
#include "sse_state.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/metrics.h"

#include <string.h>

enum {
    PAGE_MIN = 4,
    PAGE_FIRST = 64,
    PAGE_MAX = 512,
    BATCH_MAX = 64,
    FRAME_MAX = 8 << 20,
    SMALL_FRAME_MAX = 4096
};

// Where channels begin, and whether what the user has to read there changed other than by events
// that came.
static const struct statement BEGIN = {
    "gateway_resume_begin",
    "SELECT a.number, resume_seq(m.channel_id, m.user_id, m.member_seq, $3::xid8, $4::xid8, $5),"
    " m.active AND (m.changed >= $4::xid8 OR coalesce(changes_since(m.channel_id, $3::xid8), "
    "false))"
    " FROM unnest($2) WITH ORDINALITY AS a (id, number)"
    " JOIN channel_members m ON m.channel_id = a.id AND m.user_id = $1"};

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
    resume_note(c, behind->channel_id, PROGRESS_EVENTS, to_seq);
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
    resume_note(c, behind->channel_id, PROGRESS_EVENTS, row->seq);
    connection_send_text(c, frame.data, frame.length);
    metric_add(METRIC_EVENTS_RESUMED, 1);
    behind->at_seq = row->seq;
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
        if (!resume_has_room(c)) {
            sse_of(c)->resume->page = i > PAGE_MIN ? i : PAGE_MIN;
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

// Up to where events are there to be read: an id says that all committed before was sent, also what
// the instance itself has not heard of yet.
static int64_t end_seq(const struct stream *stream, const struct behind *behind)
{
    return stream->sent_seq > behind->seen_seq ? stream->sent_seq : behind->seen_seq;
}

// Whether nothing is left to be read; the seat then gets what comes next.
static bool behind_is_over(struct connection *c, const struct behind *behind)
{
    const struct stream *stream = stream_find(c->gateway, behind->channel_id);
    struct seat *seat = stream ? seat_find(c, stream) : NULL;
    if (behind->at_seq >= behind->to_seq)
        return true;
    if (!seat || behind->at_seq < end_seq(stream, behind))
        return false;
    seat->from_seq = behind->at_seq;
    return true;
}

// Whether the channel needs no other page.
static bool behind_take(struct connection *c, struct behind *behind, const struct result *result)
{
    struct resume *resume = sse_of(c)->resume;
    const struct stream *stream = stream_find(c->gateway, behind->channel_id);
    const struct seat *seat = stream ? seat_find(c, stream) : NULL;
    bool last_page = result_rows(result) < resume->page;
    if (!rows_tell(c, behind, seat, result))
        return false;
    if (!last_page && resume->page < PAGE_MAX)
        resume->page *= 2;
    if (!seat && behind->at_seq < behind->to_seq) // the leave is read, or never was there
        return last_page && !resume->asked_seated;
    if (last_page && behind->at_seq < behind->to_seq && behind->at_seq < resume->asked_end_seq)
        gap_tell(c, behind, resume->asked_end_seq);
    return behind_is_over(c, behind);
}

static void on_page(void *arg, const struct store_outcome *outcome)
{
    struct resume *resume = arg;
    struct connection *c = resume_answer(resume, outcome);
    if (!c)
        return;
    struct behind *behind = &resume->behind[resume->next];
    if (behind_take(c, behind, outcome->result)) {
        behind->stage = BEHIND_STATE;
        resume->page = PAGE_FIRST;
    }
    resume_go_on(c);
}

// More than may be read is told of as a gap.
static void page_of(struct connection *c, struct behind *behind)
{
    struct resume *resume = sse_of(c)->resume;
    const struct stream *stream = stream_find(c->gateway, behind->channel_id);
    int64_t to_seq = behind->to_seq;
    if (stream && end_seq(stream, behind) < to_seq)
        to_seq = end_seq(stream, behind);
    if (to_seq != INT64_MAX && to_seq - behind->at_seq > c->gateway->options.resume_max_events)
        gap_tell(c, behind, to_seq - 1); // the page then ends it
    resume->asked_seated = stream && seat_find(c, stream);
    resume->asked_end_seq = to_seq;
    resume_ask(resume);
    // Apart from the short reads, which posts wait for: many streams may come back at once.
    page_ask(c->gateway, STORE_LIST, behind->channel_id, behind->at_seq, resume->page, on_page,
             resume);
}

static void on_begin(void *arg, const struct store_outcome *outcome)
{
    struct resume *resume = arg;
    struct connection *c = resume_answer(resume, outcome);
    if (!c)
        return;
    for (int row = 0; row < result_rows(outcome->result); row++) {
        int64_t number = result_int(outcome->result, row, 0);
        struct behind *behind = &resume->behind[resume->next + number - 1];
        behind->at_seq = result_int(outcome->result, row, 1);
        if (result_bool(outcome->result, row, 2))
            behind->state_due = true;
    }
    struct behind *first = &resume->behind[resume->next];
    if (first->at_seq < 0) // no longer there
        first->stage = BEHIND_DONE;
    resume_go_on(c);
}

// To find where a channel begins costs as much as was missed there: a connection that breaks soon
// asks for few, one that lasts for many at once.
static void begin_ask(struct connection *c, const struct behind *first)
{
    CLEANUP_PARAMS struct params params = {0};
    struct resume *resume = sse_of(c)->resume;
    int left = resume->pass_end - resume->next;
    int count = resume->batch < left ? resume->batch : left;
    params_text(&params, c->actor.user_id);
    params_open_text_array(&params);
    for (int i = 0; i < count && first[i].stage == BEHIND_EVENTS; i++)
        params_element_text(&params, first[i].channel_id);
    params_close_array(&params);
    params_xid(&params, sse_of(c)->since.xid);
    params_xid(&params, sse_of(c)->since.heard_xid);
    params_int(&params, first->told_seq);
    resume->batch = resume->batch < BATCH_MAX ? 2 * resume->batch : BATCH_MAX;
    resume_ask(resume);
    store_call(resume->gateway->store, STORE_SYNC, &BEGIN, &params, on_begin, resume);
}

bool resume_events_ask(struct connection *c, struct behind *behind)
{
    if (behind->at_seq >= 0 && behind_is_over(c, behind))
        return false;
    if (behind->at_seq < 0)
        begin_ask(c, behind);
    else
        page_of(c, behind);
    return true;
}
