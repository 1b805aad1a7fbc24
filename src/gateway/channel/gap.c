// SPDX-License-Identifier: Apache-2.0
// Fills gaps: reads missing events back from Postgres, a page at a time, or skips them.
#include "gap.h"

#include "../core.h"
#include "feed.h"
#include "page.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICK_MS = 10, FRAME_MAX = 8 << 20 };

struct gaps {
    struct list list; // feeds with missing events
    struct loop_timer *timer;
};

struct page_read {
    uint32_t tag;
    struct gateway *gateway;
    int64_t after_seq;
    int64_t known_seq; // the feed's, when the page was requested
    char channel_id[EVENT_ID_SIZE];
};

bool gap_is_beyond_bound(const struct feed *feed, int64_t seq)
{
    const struct gateway_options *options = &feed->gateway->options;
    return seq - feed->sent_seq >
           (int64_t)options->settings.gap_reads_max * options->settings.gap_events_max;
}

void gap_begin(struct feed *feed)
{
    struct gateway *gateway = feed->gateway;
    if (!list_is_empty(&feed->gap_link))
        return;
    if (list_is_empty(&gateway->gaps->list))
        loop_timer_set(gateway->gaps->timer, TICK_MS);
    list_append(&gateway->gaps->list, &feed->gap_link);
    feed->waiting_ms = loop_now_ms(gateway->loop);
    feed->gap_reads = 0;
}

// The end of the gap: the first held event, or the seq after the last one known.
static int64_t gap_end(const struct feed *feed)
{
    if (list_is_empty(&feed->held))
        return feed->known_seq + 1;
    return LIST_ITEM(feed->held.next, struct held, link)->event->seq;
}

static int64_t gap_missing(const struct feed *feed)
{
    return gap_end(feed) - 1 - feed->sent_seq;
}

// Whether the remaining reads can fill it.
static bool gap_is_small(const struct feed *feed)
{
    const struct gateway_options *options = &feed->gateway->options;
    int64_t reads_left = options->settings.gap_reads_max - feed->gap_reads;
    return gap_missing(feed) <= reads_left * options->settings.gap_events_max;
}

static void gap_skip(struct feed *feed)
{
    feed->gap_reads = 0;
    feed->waiting_ms = loop_now_ms(feed->gateway->loop);
    feed_skip(feed, gap_end(feed) - 1);
    feed_release(feed);
}

static void row_send(struct feed *feed, const struct page_row *row)
{
    CLEANUP(buffer_done) struct buffer frame = BUFFER(FRAME_MAX);
    page_frame_write(row, feed->workspace_id, feed->channel_id, &frame);
    if (buffer_failed(&frame)) {
        feed_skip(feed, row->seq);
        return;
    }
    struct feed_item item = {.seq = row->seq,
                             .event_ts = row->event_ts,
                             .ts = row->event_ts,
                             .kind = row->kind,
                             .channel_type = row->channel_type,
                             .type = page_row_type(row),
                             .user_id = row->actor,
                             .origin = "",
                             .frame = frame.data,
                             .frame_length = frame.length};
    feed_send(feed, &item);
}

// Rows are in the order of seq. Events missing between them are gone for good (retention).
static void rows_send(struct feed *feed, const struct result *result)
{
    for (int i = 0; i < result_rows(result); i++) {
        struct page_row row;
        feed_release(feed);
        if (page_row_read(result, i, &row) < 0 || row.seq <= feed->sent_seq)
            continue;
        if (row.seq > feed->sent_seq + 1)
            feed_skip(feed, row.seq - 1);
        if (feed->members_unknown)
            return; // the rest is read again
        row_send(feed, &row);
    }
    feed_release(feed);
}

static void on_page(void *arg, const struct store_outcome *outcome);

static void gap_ask(struct feed *feed)
{
    struct page_read *read = TAGGED_NEW(page_read);
    if (!read)
        return;
    if (feed->gap_reads++ == 0)
        metric_add(METRIC_GAPS_FOUND, 1);
    feed->gap_asked = true;
    feed->asked_ms = loop_now_ms(feed->gateway->loop);
    read->gateway = feed->gateway;
    read->after_seq = feed->sent_seq;
    read->known_seq = feed->known_seq;
    snprintf(read->channel_id, sizeof read->channel_id, "%s", feed->channel_id);
    gateway_ask(feed->gateway);
    page_ask(feed->gateway, STORE_READ, feed->channel_id, feed->sent_seq,
             (int)feed->gateway->options.settings.gap_events_max, on_page, read);
}

// Takes a page. If more is missing, requests the next one at once; a failed read is retried after
// the delay.
static void page_take(struct feed *feed, int64_t known_seq, const struct store_outcome *outcome)
{
    int64_t before = feed->sent_seq;
    feed->gap_asked = false;
    if (outcome->r < 0) {
        feed->gap_reads--;
        return;
    }
    rows_send(feed, outcome->result);
    if (feed->sent_seq > before)
        metric_add(METRIC_GAPS_FILLED, 1);
    else if (result_rows(outcome->result) == 0 && feed->known_seq == known_seq &&
             list_is_empty(&feed->held))
        feed->known_seq = feed->sent_seq; // Redis announced an event that Postgres does not have
    if (gap_missing(feed) > 0 && feed->sent_seq > before && gap_is_small(feed) &&
        !feed->members_unknown)
        gap_ask(feed);
}

static void on_page(void *arg, const struct store_outcome *outcome)
{
    struct page_read *read = CAST(page_read, arg);
    bool alive = gateway_answer(read->gateway);
    struct feed *feed = alive ? feed_find(read->gateway, read->channel_id) : NULL;
    int64_t after_seq = read->after_seq, known_seq = read->known_seq;
    TAGGED_FREE(read);
    // The feed may be a new one for the same channel, and further behind.
    if (feed && feed->gap_asked && feed->sent_seq >= after_seq)
        page_take(feed, known_seq, outcome);
}

// Requests the first page after a delay, since events that were only reordered arrive by
// themselves.
static void gap_check(struct feed *feed, int64_t now_ms)
{
    const struct gateway_options *options = &feed->gateway->options;
    int64_t waited_ms = now_ms - feed->waiting_ms;
    if (feed->members_unknown)
        return;
    if (gap_missing(feed) <= 0)
        feed->gap_reads = 0;
    else if (waited_ms >= options->settings.gap_timeout_ms ||
             (!feed->gap_asked && !gap_is_small(feed)))
        gap_skip(feed);
    else if (!feed->gap_asked && waited_ms >= options->settings.gap_delay_ms &&
             now_ms - feed->asked_ms >= options->settings.gap_delay_ms)
        gap_ask(feed);
}

void gap_on_timer(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    int64_t now_ms = loop_now_ms(gateway->loop);
    LIST_FOREACH(link, &gateway->gaps->list)
    {
        struct feed *feed = LIST_ITEM(link, struct feed, gap_link);
        gap_check(feed, now_ms);
        if (feed->known_seq <= feed->sent_seq)
            list_remove(link);
    }
    if (!list_is_empty(&gateway->gaps->list))
        loop_timer_set(gateway->gaps->timer, TICK_MS);
}

int gaps_new(struct gateway *gateway)
{
    gateway->gaps = memory_must_new(sizeof *gateway->gaps);
    list_init(&gateway->gaps->list);
    return loop_timer_new(gateway->loop, gap_on_timer, gateway, &gateway->gaps->timer);
}

void gaps_free(struct gateway *gateway)
{
    if (!gateway->gaps)
        return;
    loop_timer_free(gateway->gaps->timer);
    free(TAKE(gateway->gaps));
}
