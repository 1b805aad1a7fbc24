// SPDX-License-Identifier: Apache-2.0
// Sends committed marks to Redis, answers their callers, and notifies the users' other devices.
#include "marker_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"
#include "unread/keys.h"
#include "unread/strategy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENT_MAX_BYTES = 16384 };

static void settling_done(struct settling *settling)
{
    ASSERT(settling->pending > 0);
    if (--settling->pending > 0)
        return;
    // If Redis has missed a row, it is left to the relay's polling.
    if (!settling->failed)
        settling->marker->options.on_settled(settling->marker->options.arg, settling->outbox_id);
    TAGGED_FREE(settling);
}

static void on_mark_published(void *arg, int r, const struct cache_value *value)
{
    struct settling *settling = CAST(settling, arg);

    (void)value;
    settling->failed = settling->failed || r < 0;
    settling_done(settling);
}

static void mark_publish(struct settling *settling, const struct unread_view *view)
{
    struct event *event = unread_mark_event(UNREAD_FRAME_MARKED, view, settling->at_us);
    CLEANUP(buffer_done) struct buffer wire = BUFFER(EVENT_MAX_BYTES);
    char topic[KEY_SIZE];

    if (!event) {
        settling->failed = true;
        return;
    }
    event_encode(event, &wire);
    event_unref(event);
    if (buffer_failed(&wire)) {
        settling->failed = true;
        return;
    }
    settling->pending++;
    key_user_topic(topic, view->user_id);
    cache_call(settling->marker->cache, 3, (const char *const[]){"SPUBLISH", topic, wire.data},
               (const size_t[]){8, strlen(topic), wire.length}, on_mark_published, settling);
}

// Redis has the marks or is down: answers their callers.
static void marks_settled(void *arg, int r, const struct cache_value *value)
{
    struct settling *settling = CAST(settling, arg);

    (void)value;
    settling->failed = settling->failed || r < 0;
    for (int i = 0; i < settling->count; i++) {
        struct settled *settled = &settling->marks[i];
        if (r == 0)
            mark_publish(settling, &settled->view);
        settled->mark->fn(settled->mark->arg, 0, &settled->view);
    }
    settling_done(settling);
}

// Updates the strategy's state of the channel. Nobody waits for it: until it arrives, the old state
// is not used.
static void strategy_update(struct marker *marker, const struct mark *mark,
                            const struct unread_view *view)
{
    const struct strategy_ops *ops = strategy_find(view->head.strategy);

    if (!ops || !ops->on_read)
        return;
    UNZEROED struct fcall call;
    if (!ops->on_read(&call, view, mark->tss, mark->ts_count))
        return;
    fcall_end(&call);
    cache_call(marker->cache, call.count, call.texts, NULL, NULL, NULL);
}

// False: out of memory.
static bool settling_call(struct settling *settling)
{
    struct member_call *calls = malloc((size_t)settling->count * sizeof *calls);
    const char **texts = NULL;
    int count;

    for (int i = 0; calls && i < settling->count; i++) {
        const struct unread_view *view = &settling->marks[i].view;
        member_call_make(&calls[i], view->user_id, view->channel_id, &view->member);
    }
    if (calls)
        texts = members_call_new(calls, settling->count, &count);
    if (texts)
        cache_call(settling->marker->cache, count, texts, NULL, marks_settled, settling);
    bool called = texts != NULL;
    free(texts);
    free(calls);
    return called;
}

void settling_send(struct settling *settling)
{
    if (settling->count == 0) { // there is no outbox row then
        TAGGED_FREE(settling);
        return;
    }
    settling->pending = 1;
    if (!settling_call(settling))
        marks_settled(settling, -ERROR_MEMORY, NULL);
}

void settling_add(struct settling *settling, struct mark *mark, const struct result *result,
                  int row)
{
    const char *error = result_text(result, row, COLUMN_ERROR);
    struct unread_view view;

    if (error[0] != '\0') {
        mark->fn(mark->arg, error_from_code(error), NULL);
        return;
    }
    metric_add(METRIC_MARKS, 1);
    unread_view_read(result, row, COLUMN_VIEW, &view);
    if (!result_bool(result, row, COLUMN_CHANGED)) {
        mark->fn(mark->arg, 0, &view);
        return;
    }
    strategy_update(settling->marker, mark, &view);
    ASSERT(settling->count < settling->room);
    settling->marks[settling->count++] = (struct settled){mark, view};
}

struct settling *settling_new(struct marker *marker, const char *outbox_id, int rows)
{
    struct settling *settling = malloc(sizeof *settling + (size_t)rows * sizeof settling->marks[0]);

    if (!settling)
        return NULL;
    *settling = (struct settling){
        .tag = TAG(settling), .marker = marker, .room = rows, .at_us = clock_wall_us()};
    snprintf(settling->outbox_id, sizeof settling->outbox_id, "%s", outbox_id);
    return settling;
}
