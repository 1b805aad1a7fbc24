// SPDX-License-Identifier: Apache-2.0
// Events that did not come by themselves: read back from Postgres a page at a time, or told of as a
// gap.
#include "hole.h"

#include "core.h"
#include "page.h"
#include "stream.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICK_MS = 10, FRAME_MAX = 8 << 20 };

struct holes {
    struct list list; // streams of which something is missing
    struct loop_timer *timer;
};

struct page_read {
    uint32_t tag;
    struct gateway *gateway;
    int64_t after_seq;
    int64_t known_seq; // when it was asked for
    char channel_id[EVENT_ID_SIZE];
};

bool hole_is_beyond_bound(const struct stream *stream, int64_t seq)
{
    const struct gateway_options *options = &stream->gateway->options;
    return seq - stream->sent_seq > (int64_t)options->hole_reads_max * options->hole_events_max;
}

void hole_begin(struct stream *stream)
{
    struct gateway *gateway = stream->gateway;
    if (!list_is_empty(&stream->hole_link))
        return;
    if (list_is_empty(&gateway->holes->list))
        loop_timer_set(gateway->holes->timer, TICK_MS);
    list_append(&gateway->holes->list, &stream->hole_link);
    stream->waiting_ms = loop_now_ms(gateway->loop);
    stream->hole_reads = 0;
}

// The next event that is here already, or what is behind the last one known of.
static int64_t hole_end(const struct stream *stream)
{
    if (list_is_empty(&stream->held))
        return stream->known_seq + 1;
    return LIST_ITEM(stream->held.next, struct held, link)->event->seq;
}

static int64_t hole_missing(const struct stream *stream)
{
    return hole_end(stream) - 1 - stream->sent_seq;
}

// Whether it may be read back by the reads that are left.
static bool hole_is_small(const struct stream *stream)
{
    const struct gateway_options *options = &stream->gateway->options;
    int64_t reads_left = options->hole_reads_max - stream->hole_reads;
    return hole_missing(stream) <= reads_left * options->hole_events_max;
}

static void hole_skip(struct stream *stream)
{
    stream->hole_reads = 0;
    stream->waiting_ms = loop_now_ms(stream->gateway->loop);
    stream_skip(stream, hole_end(stream) - 1);
    stream_release(stream);
}

static void row_send(struct stream *stream, const struct page_row *row)
{
    CLEANUP(buffer_done) struct buffer frame = BUFFER(FRAME_MAX);
    page_frame_write(row, stream->workspace_id, stream->channel_id, &frame);
    if (buffer_failed(&frame)) {
        stream_skip(stream, row->seq);
        return;
    }
    struct stream_item item = {.seq = row->seq,
                               .event_ts = row->event_ts,
                               .ts = row->event_ts,
                               .kind = row->kind,
                               .channel_type = row->channel_type,
                               .user_id = row->actor,
                               .origin = "",
                               .frame = frame.data,
                               .frame_length = frame.length};
    stream_send(stream, &item);
}

// Rows come in order of seq. What is missing between them is gone for good (retention).
static void rows_send(struct stream *stream, const struct result *result)
{
    for (int i = 0; i < result_rows(result); i++) {
        struct page_row row;
        stream_release(stream);
        if (page_row_read(result, i, &row) < 0 || row.seq <= stream->sent_seq)
            continue;
        if (row.seq > stream->sent_seq + 1)
            stream_skip(stream, row.seq - 1);
        if (stream->members_unknown)
            return; // what is left is read again
        row_send(stream, &row);
    }
    stream_release(stream);
}

static void on_page(void *arg, const struct store_outcome *outcome);

static void hole_ask(struct stream *stream)
{
    struct page_read *read = TAGGED_NEW(page_read);
    if (!read)
        return;
    if (stream->hole_reads++ == 0)
        metric_add(METRIC_GAPS_FOUND, 1);
    stream->hole_asked = true;
    stream->asked_ms = loop_now_ms(stream->gateway->loop);
    read->gateway = stream->gateway;
    read->after_seq = stream->sent_seq;
    read->known_seq = stream->known_seq;
    snprintf(read->channel_id, sizeof read->channel_id, "%s", stream->channel_id);
    gateway_ask(stream->gateway);
    page_ask(stream->gateway, STORE_READ, stream->channel_id, stream->sent_seq,
             stream->gateway->options.hole_events_max, on_page, read);
}

// Takes a page. When there is more, the next one is asked for at once; what was not answered is
// asked for again after the delay.
static void page_take(struct stream *stream, int64_t known_seq, const struct store_outcome *outcome)
{
    int64_t before = stream->sent_seq;
    stream->hole_asked = false;
    if (outcome->r < 0) {
        stream->hole_reads--;
        return;
    }
    rows_send(stream, outcome->result);
    if (stream->sent_seq > before)
        metric_add(METRIC_GAPS_FILLED, 1);
    else if (result_rows(outcome->result) == 0 && stream->known_seq == known_seq &&
             list_is_empty(&stream->held))
        stream->known_seq = stream->sent_seq; // Redis told of what Postgres does not have
    if (hole_missing(stream) > 0 && stream->sent_seq > before && hole_is_small(stream) &&
        !stream->members_unknown)
        hole_ask(stream);
}

static void on_page(void *arg, const struct store_outcome *outcome)
{
    struct page_read *read = CAST(page_read, arg);
    bool alive = gateway_answer(read->gateway);
    struct stream *stream = alive ? stream_find(read->gateway, read->channel_id) : NULL;
    int64_t after_seq = read->after_seq, known_seq = read->known_seq;
    TAGGED_FREE(read);
    // The stream may be another than the one that asked, and further behind.
    if (stream && stream->hole_asked && stream->sent_seq >= after_seq)
        page_take(stream, known_seq, outcome);
}

// The first page is asked for after a delay: what is reordered comes by itself within it.
static void hole_tend(struct stream *stream, int64_t now_ms)
{
    const struct gateway_options *options = &stream->gateway->options;
    int64_t waited_ms = now_ms - stream->waiting_ms;
    if (stream->members_unknown)
        return;
    if (hole_missing(stream) <= 0)
        stream->hole_reads = 0;
    else if (waited_ms >= options->hole_timeout_ms ||
             (!stream->hole_asked && !hole_is_small(stream)))
        hole_skip(stream);
    else if (!stream->hole_asked && waited_ms >= options->hole_delay_ms &&
             now_ms - stream->asked_ms >= options->hole_delay_ms)
        hole_ask(stream);
}

void hole_on_timer(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    int64_t now_ms = loop_now_ms(gateway->loop);
    LIST_FOREACH(link, &gateway->holes->list)
    {
        struct stream *stream = LIST_ITEM(link, struct stream, hole_link);
        hole_tend(stream, now_ms);
        if (stream->known_seq <= stream->sent_seq)
            list_remove(link);
    }
    if (!list_is_empty(&gateway->holes->list))
        loop_timer_set(gateway->holes->timer, TICK_MS);
}

int holes_new(struct gateway *gateway)
{
    gateway->holes = memory_must_new(sizeof *gateway->holes);
    list_init(&gateway->holes->list);
    return loop_timer_new(gateway->loop, hole_on_timer, gateway, &gateway->holes->timer);
}

void holes_free(struct gateway *gateway)
{
    if (!gateway->holes)
        return;
    loop_timer_free(gateway->holes->timer);
    free(TAKE(gateway->holes));
}
