// SPDX-License-Identifier: Apache-2.0
// Compares what was sent with what there is, so that a lost last event is found: with the heads in
// Redis, or where it does not know, with the truth; every STORE_ROUNDS-th time with the truth
// alone, since a head that Redis has may be old (a replica that lagged and took over). A round goes
// over all streams a slice at a time.
#include "heads.h"

#include "changed.h"
#include "core.h"
#include "hole.h"
#include "stream.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "unread/keys.h"

#include <stdlib.h>
#include <string.h>

enum { SLICE = 500, SLICE_PAUSE_MS = 5, STORE_ROUNDS = 8 };

static const struct statement HEADS = {
    "gateway_heads", "SELECT id, seq, generation FROM channel_heads WHERE id = ANY($1)"};

struct heads {
    struct stream *cursor; // the next stream whose head is to be compared
    unsigned rounds;
    bool by_store; // this round compares with Postgres, not with Redis
    struct loop_timer *timer;
};

// The heads that were asked of Redis together; answers come in the order of asking.
struct heads_slice {
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
        struct stream *stream = stream_find(gateway, result_text(outcome->result, row, 0));
        if (!stream)
            continue;
        stream_heard(stream, result_int(outcome->result, row, 1));
        changed_generation(stream, result_int(outcome->result, row, 2));
    }
}

static void store_ask(struct gateway *gateway, struct params *params)
{
    params_close_array(params);
    gateway_ask(gateway);
    store_call(gateway->store, STORE_SYNC, &HEADS, params, on_store, gateway);
}

// Those that Redis does not know.
static void slice_finish(struct heads_slice *slice)
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
    struct heads_slice *slice = CAST(heads_slice, arg);
    const char *id = slice->ids[slice->answered++];
    bool last = slice->answered == slice->count;
    if (!gateway_answer(slice->gateway)) {
        if (last)
            TAGGED_FREE(slice);
        return;
    }
    struct stream *stream = stream_find(slice->gateway, id);
    int64_t seq = 0;
    // A head that is far ahead would be told as a gap: not on Redis' word alone.
    if (r < 0 || !cache_value_number(value, &seq) || (stream && hole_is_beyond_bound(stream, seq)))
        memcpy(slice->unknown[slice->unknown_count++], id, EVENT_ID_SIZE);
    else if (stream)
        stream_heard(stream, seq);
    if (last)
        slice_finish(slice);
}

static void head_ask(struct heads_slice *slice, int index)
{
    char key[KEY_SIZE];
    key_channel(key, slice->ids[index]);
    cache_call(slice->gateway->cache, 3, (const char *[]){"HGET", key, "seq"}, NULL, on_head,
               slice);
}

static void slice_by_cache(struct gateway *gateway)
{
    struct heads_slice *slice = TAGGED_NEW(heads_slice);
    if (!slice)
        return;
    slice->gateway = gateway;
    struct stream *stream = gateway->heads->cursor;
    for (; stream && slice->count < SLICE; stream = stream->hh.next)
        memcpy(slice->ids[slice->count++], stream->channel_id, EVENT_ID_SIZE);
    gateway->heads->cursor = stream;
    for (int i = 0; i < slice->count; i++) {
        gateway_ask(gateway);
        head_ask(slice, i);
    }
}

static void slice_by_store(struct gateway *gateway)
{
    CLEANUP_PARAMS struct params params = {0};
    struct stream *stream = gateway->heads->cursor;
    params_open_text_array(&params);
    for (int i = 0; stream && i < SLICE; i++, stream = stream->hh.next)
        params_element_text(&params, stream->channel_id);
    gateway->heads->cursor = stream;
    store_ask(gateway, &params);
}

static void round_begin(struct gateway *gateway)
{
    gateway->heads->cursor = gateway->streams;
    if (++gateway->heads->rounds % STORE_ROUNDS == 0)
        gateway->heads->by_store = true;
}

static void on_timer(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    if (!gateway->heads->cursor)
        round_begin(gateway);
    if (gateway->heads->cursor && (gateway->heads->by_store || !cache_is_up(gateway->cache)))
        slice_by_store(gateway);
    else if (gateway->heads->cursor)
        slice_by_cache(gateway);
    if (!gateway->heads->cursor)
        gateway->heads->by_store = false;
    loop_timer_set(gateway->heads->timer,
                   gateway->heads->cursor ? SLICE_PAUSE_MS : gateway->options.head_check_ms);
}

void heads_check_store(struct gateway *gateway)
{
    gateway->heads->by_store = true;
    gateway->heads->cursor = NULL;
    loop_timer_set(gateway->heads->timer, 0);
}

bool heads_are_read(const struct gateway *gateway)
{
    return gateway->heads->by_store && gateway->heads->cursor;
}

// Their topics were asked for when their heads were known already: what came in between was not
// heard.
void heads_young(struct gateway *gateway)
{
    CLEANUP_PARAMS struct params params = {0};
    int count = 0;
    params_open_text_array(&params);
    for (struct stream *stream = gateway->streams; stream; stream = stream->hh.next) {
        if (!stream->is_young)
            continue;
        stream->is_young = false;
        params_element_text(&params, stream->channel_id);
        count++;
    }
    if (count > 0)
        store_ask(gateway, &params);
}

void heads_forget(struct stream *stream)
{
    if (stream->gateway->heads->cursor == stream)
        stream->gateway->heads->cursor = stream->hh.next;
}

int heads_new(struct gateway *gateway)
{
    gateway->heads = memory_must_new(sizeof *gateway->heads);
    int r = loop_timer_new(gateway->loop, on_timer, gateway, &gateway->heads->timer);
    if (r >= 0)
        loop_timer_set(gateway->heads->timer, gateway->options.head_check_ms);
    return r;
}

void heads_free(struct gateway *gateway)
{
    if (!gateway->heads)
        return;
    loop_timer_free(gateway->heads->timer);
    free(TAKE(gateway->heads));
}
