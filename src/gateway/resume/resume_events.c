// SPDX-License-Identifier: Apache-2.0
// Sends the channel events of a backlog. One read takes a page of one channel, or all missed events
// of several channels with few of them.
#include "resume_events.h"

#include "../channel/feed.h"
#include "../channel/page.h"
#include "../core.h"
#include "../position.h"
#include "resume_state.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/error.h"
#include "base/metrics.h"
#include "events/event_type.h"

#include <string.h>

enum { PAGE_MIN = 4, PAGE_MAX = 512, BATCH_MAX = 64, FRAME_MAX = 8 << 20 };

// Where channels begin, and whether the user's unread state there changed for another reason than
// new events.
static const struct statement BEGIN = {
    "gateway_resume_begin",
    "SELECT a.number, resume_seq(m.channel_id, m.user_id, m.member_seq, $3::xid8, $4::xid8, $5),"
    " m.active AND (m.changed >= $4::xid8 OR coalesce(changes_since(m.channel_id, $3::xid8), "
    "false)), CASE WHEN $6 > 0 THEN channel_seq_below(m.channel_id, $6::text::xid8) END"
    " FROM unnest($2) WITH ORDINALITY AS a (id, number)"
    " JOIN channel_members m ON m.channel_id = a.id AND m.user_id = $1"};

static struct feed_subscriber *subscriber_of(const struct resume *resume, const struct feed *feed)
{
    return feed && resume->ops->subscriber ? resume->ops->subscriber(resume->arg, feed) : NULL;
}

static void gap_send(struct resume *resume, struct behind *behind, int64_t to_seq)
{
    resume_progress_set(resume, behind->channel_id, PROGRESS_EVENTS, to_seq);
    resume->ops->gap(resume->arg, behind->channel_id, behind->at_seq + 1, to_seq);
    metric_add(METRIC_GAPS_TOLD, 1);
    behind->at_seq = to_seq;
}

static void row_send(struct resume *resume, struct behind *behind, const struct page_row *row)
{
    CLEANUP(buffer_done) struct buffer frame = BUFFER(FRAME_MAX);
    if (row->seq > behind->at_seq + 1) // dropped by retention
        gap_send(resume, behind, row->seq - 1);
    page_frame_write(row, resume->actor->workspace_id, behind->channel_id, &frame);
    if (buffer_failed(&frame)) {
        gap_send(resume, behind, row->seq);
        return;
    }
    resume_progress_set(resume, behind->channel_id, PROGRESS_EVENTS, row->seq);
    const char *type = page_row_type(row);
    if (event_is_slacks(row->kind, row->channel_type, type))
        resume_send(resume, type, &frame);
    else
        resume_send_own(resume, type, &frame);
    metric_add(METRIC_EVENTS_RESUMED, 1);
    behind->at_seq = row->seq;
}

// Whether the user was a member when the event happened. The user's own joins and leaves are sent.
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

// Events after the last leave are not for this user, unless the connection is still subscribed, or
// again. False: rows are left, since there was no room.
static bool rows_send(struct resume *resume, struct behind *behind,
                      const struct feed_subscriber *subscriber, const struct page *page)
{
    for (int i = page->first; i < page->end && behind->at_seq < behind->to_seq; i++) {
        struct page_row row;
        if (page_row_read(page->result, i, &row) < 0 || row.seq <= behind->at_seq)
            continue;
        if (!resume->ops->has_room(resume->arg, 1)) {
            int sent = i - page->first;
            resume->page = sent > PAGE_MIN ? sent : PAGE_MIN;
            return false;
        }
        if (row_is_for(behind, &row, resume->actor->user_id))
            row_send(resume, behind, &row);
        behind->at_seq = row.seq;
        if (behind->is_away && !subscriber && behind->to_seq == INT64_MAX)
            behind->to_seq = row.seq;
    }
    return true;
}

// The seq up to which events must be read. A position promises that everything committed before it
// was sent, including events that this instance has not received yet.
static int64_t end_seq(const struct feed *feed, const struct behind *behind)
{
    int64_t seq = behind->seen_seq;
    if (feed && feed->sent_seq > seq)
        seq = feed->sent_seq;
    return seq < behind->to_seq ? seq : behind->to_seq;
}

// Whether nothing is left to read; the subscription then takes over.
static bool behind_is_over(struct resume *resume, const struct behind *behind)
{
    const struct feed *feed = feed_find(resume->gateway, behind->channel_id);
    struct feed_subscriber *subscriber = subscriber_of(resume, feed);
    if (behind->at_seq >= behind->to_seq)
        return true;
    if (!subscriber || behind->at_seq < end_seq(feed, behind))
        return false;
    subscriber->from_seq = behind->at_seq;
    return true;
}

// Takes a channel's page. Whether the channel is finished.
static bool behind_take(struct resume *resume, struct behind *behind, const struct page *page)
{
    const struct feed *feed = feed_find(resume->gateway, behind->channel_id);
    const struct feed_subscriber *subscriber = subscriber_of(resume, feed);
    bool last_page = page->end - page->first < resume->asked_page;
    bool leaves = behind->to_seq != behind->seen_seq; // otherwise a call, which ends at the head
    if (!rows_send(resume, behind, subscriber, page))
        return false;
    if (!last_page && resume->page < PAGE_MAX)
        resume->page *= 2;
    if (!subscriber && leaves &&
        behind->at_seq < behind->to_seq) // done at the last page, even if it has no leave
        return last_page && !behind->asked_subscribed;
    if (last_page && behind->at_seq < behind->to_seq && behind->at_seq < behind->asked_end_seq)
        gap_send(resume, behind, behind->asked_end_seq);
    return behind_is_over(resume, behind);
}

static bool is_due_more(const struct behind *behind)
{
    return behind->state_due || behind->threads_due;
}

// Takes the pages of the requested channels in order. Stops at the first channel that is not
// finished: the others are read again by the next request.
static void pages_take(struct resume *resume, const struct result *result)
{
    struct page page = {result, 0, 0};
    for (int number = 1; number <= resume->asked; number++) {
        struct behind *behind = &resume->behind[resume->next];
        page_next(&page, number);
        if (!behind_take(resume, behind, &page))
            return;
        behind->stage = BEHIND_STATE;
        resume->page = resume->ops->first_page;
        if (number == resume->asked || is_due_more(behind))
            return;
        behind->stage = BEHIND_DONE;
        resume->next++;
    }
}

static void on_pages(void *arg, const struct store_outcome *outcome)
{
    struct resume *resume = CAST(resume, arg);
    if (!resume_answer(resume, outcome))
        return;
    pages_take(resume, outcome->result);
    resume->advance(resume);
}

// Decides where a channel's page begins and ends. More events than may be read become a gap.
static void page_prepare(struct resume *resume, struct behind *behind)
{
    const struct feed *feed = feed_find(resume->gateway, behind->channel_id);
    int64_t max = resume->gateway->options.settings.resume_max_events;
    int64_t to_seq = behind->to_seq;
    if (behind->is_member || feed)
        to_seq = end_seq(feed, behind);
    if (to_seq != INT64_MAX && to_seq - behind->at_seq > max)
        gap_send(resume, behind, to_seq - 1); // the last event is then read
    behind->asked_subscribed = subscriber_of(resume, feed) != NULL;
    behind->asked_end_seq = to_seq;
}

// The number of events to read in the channel; a huge number if unknown.
static int64_t behind_missing(const struct resume *resume, const struct behind *behind)
{
    const struct feed *feed = feed_find(resume->gateway, behind->channel_id);
    int64_t to_seq = behind->is_member ? end_seq(feed, behind) : behind->to_seq;
    return to_seq > behind->at_seq ? to_seq - behind->at_seq : 0;
}

// Whether the channel may be read together with the one before it.
static bool is_grouped(const struct behind *behind)
{
    return behind->stage == BEHIND_EVENTS && behind->at_seq >= 0 && !is_due_more(&behind[-1]);
}

// The number of channels, from `first` on, whose missing events fit into one page. At least 1.
static int pages_count(const struct resume *resume, const struct behind *first)
{
    int64_t max = resume->gateway->options.settings.resume_max_events;
    int64_t left = resume->page - behind_missing(resume, first);
    int most = resume->pass_end - resume->next;
    int count = 1;
    for (; count < most && count < BATCH_MAX && is_grouped(&first[count]); count++) {
        int64_t missing = behind_missing(resume, &first[count]);
        left -= missing;
        if (left < 0 || missing > max)
            break;
    }
    return count;
}

static void pages_ask(struct resume *resume, struct behind *first)
{
    struct page_start starts[BATCH_MAX];
    resume->asked = pages_count(resume, first);
    resume->asked_page = resume->page;
    for (int i = 0; i < resume->asked; i++) {
        page_prepare(resume, &first[i]);
        starts[i] = (struct page_start){first[i].channel_id, first[i].at_seq};
    }
    resume_ask(resume);
    // In a lane apart from the short reads, which posts wait for: many clients may resume at once.
    pages_read(resume->gateway, STORE_LIST, starts, resume->asked, resume->page,
               resume->actor->user_id, on_pages, resume);
}

// The pass of a call ends at the snapshot of the backlog's first call: later events are for the
// next pass. A leave that an earlier call returned is not sent again.
static void end_take(struct behind *behind, int64_t end)
{
    int64_t before_leave = end < behind->to_seq ? behind->to_seq : behind->to_seq - 1;

    if (behind->is_member && end < behind->to_seq)
        behind->to_seq = behind->seen_seq = end;
    else if (!behind->is_member && behind->at_seq < before_leave)
        behind->at_seq = before_leave;
}

static void begin_take(struct resume *resume, struct behind *behind, const struct result *result,
                       int row)
{
    bool is_bounded = !result_is_null(result, row, 3);
    behind->at_seq = result_int(result, row, 1);
    if (resume->ops->is_call)
        end_take(behind, is_bounded ? result_int(result, row, 3) : behind->to_seq);
    if (result_bool(result, row, 2))
        behind->state_due = true;
}

static void on_begin(void *arg, const struct store_outcome *outcome)
{
    struct resume *resume = CAST(resume, arg);
    if (!resume_answer(resume, outcome))
        return;
    struct behind *first = &resume->behind[resume->next];
    for (int row = 0; row < result_rows(outcome->result); row++)
        begin_take(resume, &first[result_int(outcome->result, row, 0) - 1], outcome->result, row);
    if (first->at_seq < 0) // no longer there
        first->stage = BEHIND_DONE;
    resume->advance(resume);
}

// Finding where a channel begins costs as much as was missed there. So a connection starts with few
// channels per query, in case it breaks soon, and doubles the number each time.
static void begin_ask(struct resume *resume, const struct behind *first)
{
    CLEANUP_PARAMS struct params params = {0};
    int left = resume->pass_end - resume->next;
    int count = resume->batch < left ? resume->batch : left;
    if (first->earlier_seq > 0) // needs no search, unlike the others
        count = 1;
    params_text(&params, resume->actor->user_id);
    params_open_text_array(&params);
    for (int i = 0;
         i < count && first[i].stage == BEHIND_EVENTS && (i == 0 || first[i].earlier_seq == 0); i++)
        params_element_text(&params, first[i].channel_id);
    params_close_array(&params);
    params_xid(&params, resume->place->since.xid);
    params_xid(&params, resume->place->since.received_xid);
    params_int(&params, first->earlier_seq);
    params_int(&params, resume->is_last_pass ? 0 : resume->place->progress.until.xid);
    resume->batch = resume->batch < BATCH_MAX ? 2 * resume->batch : BATCH_MAX;
    resume_ask(resume);
    store_call(resume->gateway->store, STORE_SYNC, &BEGIN, &params, on_begin, resume);
}

bool resume_events_ask(struct resume *resume, struct behind *behind)
{
    if (behind->at_seq >= 0 && behind_is_over(resume, behind))
        return false;
    if (behind->at_seq < 0)
        begin_ask(resume, behind);
    else
        pages_ask(resume, behind);
    return true;
}
