// SPDX-License-Identifier: Apache-2.0
// Compares feeds with their channels' heads, in order to find a missing last event. The heads are
// read from Redis, and from Postgres if Redis does not have them; in every STORE_ROUNDS-th round
// from Postgres alone, since a head in Redis may be old (after failover to a replica that lagged).
// A round checks all feeds, a slice at a time.
#include "tail_check.h"

#include "../core.h"
#include "../user/unread_frames.h"
#include "feed.h"
#include "gap.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "unread/keys.h"

#include <stdlib.h>
#include <string.h>

enum { SLICE = 500, SLICE_PAUSE_MS = 5, STORE_ROUNDS = 8 };

static const struct statement HEADS = {
    "gateway_heads", "SELECT id, seq, generation FROM channel_heads WHERE id = ANY($1)"};

struct tail_check {
    struct feed *cursor; // the next feed to check
    unsigned rounds;
    bool by_store; // this round reads Postgres, not Redis
    struct loop_timer *timer;
};

// Heads requested from Redis together. The answers arrive in the order of the requests.
struct tail_check_slice {
    uint32_t tag;
    struct gateway *gateway;
    int count;
    int answered;
    int unknown_count;
    char ids[SLICE][EVENT_ID_SIZE];
    char unknown[SLICE][EVENT_ID_SIZE];
};

static void on_store(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = CAST(gateway, arg);
    if (!gateway_answer(gateway) || outcome->r < 0)
        return;
    for (int row = 0; row < result_rows(outcome->result); row++) {
        struct feed *feed = feed_find(gateway, result_text(outcome->result, row, 0));
        if (!feed)
            continue;
        feed_note_head(feed, result_int(outcome->result, row, 1));
        unread_frames_on_generation(feed, result_int(outcome->result, row, 2));
    }
}

static void store_ask(struct gateway *gateway, struct params *params)
{
    params_close_array(params);
    gateway_ask(gateway);
    store_call(gateway->store, STORE_SYNC, &HEADS, params, on_store, gateway);
}

// Reads the heads that Redis does not have from Postgres.
static void slice_finish(struct tail_check_slice *slice)
{
    CLEANUP_PARAMS struct params params = {0};
    if (slice->unknown_count > 0) {
        params_open_text_array(&params);
        for (int i = 0; i < slice->unknown_count; i++)
            params_element_text(&params, slice->unknown[i]);
        metric_add(METRIC_CACHE_FALLBACKS, slice->unknown_count);
        store_ask(slice->gateway, &params);
    }
    TAGGED_FREE(slice);
}

static void on_head(void *arg, int r, const struct cache_value *value)
{
    struct tail_check_slice *slice = CAST(tail_check_slice, arg);
    const char *id = slice->ids[slice->answered++];
    bool last = slice->answered == slice->count;
    if (!gateway_answer(slice->gateway)) {
        if (last)
            TAGGED_FREE(slice);
        return;
    }
    struct feed *feed = feed_find(slice->gateway, id);
    int64_t seq = 0;
    // A head far ahead would skip events as a gap: Postgres must confirm it first.
    if (r < 0 || !cache_value_number(value, &seq) || (feed && gap_is_beyond_bound(feed, seq)))
        memcpy(slice->unknown[slice->unknown_count++], id, EVENT_ID_SIZE);
    else if (feed)
        feed_note_head(feed, seq);
    if (last)
        slice_finish(slice);
}

static void head_ask(struct tail_check_slice *slice, int index)
{
    char key[KEY_SIZE];
    key_channel(key, slice->ids[index]);
    cache_call(slice->gateway->cache, 3, (const char *[]){"HGET", key, "seq"}, NULL, on_head,
               slice);
}

static void slice_by_cache(struct gateway *gateway)
{
    struct tail_check_slice *slice = TAGGED_NEW(tail_check_slice);
    if (!slice)
        return;
    slice->gateway = gateway;
    struct feed *feed = gateway->tail_check->cursor;
    for (; feed && slice->count < SLICE; feed = feed->hh.next)
        memcpy(slice->ids[slice->count++], feed->channel_id, EVENT_ID_SIZE);
    gateway->tail_check->cursor = feed;
    for (int i = 0; i < slice->count; i++) {
        gateway_ask(gateway);
        head_ask(slice, i);
    }
}

static void slice_by_store(struct gateway *gateway)
{
    CLEANUP_PARAMS struct params params = {0};
    struct feed *feed = gateway->tail_check->cursor;
    params_open_text_array(&params);
    for (int i = 0; feed && i < SLICE; i++, feed = feed->hh.next)
        params_element_text(&params, feed->channel_id);
    gateway->tail_check->cursor = feed;
    store_ask(gateway, &params);
}

static void round_begin(struct gateway *gateway)
{
    gateway->tail_check->cursor = gateway->feeds;
    if (++gateway->tail_check->rounds % STORE_ROUNDS == 0)
        gateway->tail_check->by_store = true;
}

static void on_timer(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    if (!gateway->tail_check->cursor)
        round_begin(gateway);
    if (gateway->tail_check->cursor &&
        (gateway->tail_check->by_store || !cache_is_up(gateway->cache)))
        slice_by_store(gateway);
    else if (gateway->tail_check->cursor)
        slice_by_cache(gateway);
    if (!gateway->tail_check->cursor)
        gateway->tail_check->by_store = false;
    loop_timer_set(gateway->tail_check->timer, gateway->tail_check->cursor
                                                   ? SLICE_PAUSE_MS
                                                   : gateway->options.settings.tail_check_ms);
}

void tail_check_all(struct gateway *gateway)
{
    gateway->tail_check->by_store = true;
    gateway->tail_check->cursor = NULL;
    loop_timer_set(gateway->tail_check->timer, 0);
}

bool tail_check_is_running(const struct gateway *gateway)
{
    return gateway->tail_check->by_store && gateway->tail_check->cursor;
}

// Unconfirmed feeds subscribed to their topics after their heads were read: events from in between
// may be missing.
void tail_check_unconfirmed(struct gateway *gateway)
{
    CLEANUP_PARAMS struct params params = {0};
    int count = 0;
    params_open_text_array(&params);
    for (struct feed *feed = gateway->feeds; feed; feed = feed->hh.next) {
        if (!feed->is_unconfirmed)
            continue;
        feed->is_unconfirmed = false;
        params_element_text(&params, feed->channel_id);
        count++;
    }
    if (count > 0)
        store_ask(gateway, &params);
}

void tail_check_forget(struct feed *feed)
{
    if (feed->gateway->tail_check->cursor == feed)
        feed->gateway->tail_check->cursor = feed->hh.next;
}

int tail_check_new(struct gateway *gateway)
{
    gateway->tail_check = memory_must_new(sizeof *gateway->tail_check);
    int r = loop_timer_new(gateway->loop, on_timer, gateway, &gateway->tail_check->timer);
    if (r >= 0)
        loop_timer_set(gateway->tail_check->timer, gateway->options.settings.tail_check_ms);
    return r;
}

void tail_check_free(struct gateway *gateway)
{
    if (!gateway->tail_check)
        return;
    loop_timer_free(gateway->tail_check->timer);
    free(TAKE(gateway->tail_check));
}
