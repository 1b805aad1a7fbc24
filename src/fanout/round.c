// SPDX-License-Identifier: Apache-2.0
// A round of a fan-out worker: collects the Redis commands of its events, with one call for the
// heads of many channels.
#include "round.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "unread/effects.h"
#include "unread/keys.h"

enum { WIRE_MAX = 64 << 20 };

void round_init(struct round *round, int64_t thread_read_s)
{
    *round = (struct round){.thread_read_s = thread_read_s};
    buffer_init(&round->wire, WIRE_MAX);
}

void round_done(struct round *round)
{
    buffer_done(&round->wire);
}

static int compare_events(const void *a, const void *b)
{
    // Events without a seq (marks) are sorted by time.
    const struct event *left = *(struct event *const *)a;
    const struct event *right = *(struct event *const *)b;
    int order = strcmp(left->channel_id, right->channel_id);
    if (order == 0)
        order = (left->seq > right->seq) - (left->seq < right->seq);
    return order != 0 ? order
                      : (left->event_ts > right->event_ts) - (left->event_ts < right->event_ts);
}

void round_order(struct round *round, size_t count)
{
    round->count = count;
    qsort(round->events, count, sizeof round->events[0], compare_events);
}

void round_clear(struct round *round)
{
    for (size_t i = 0; i < round->count; i++)
        event_unref(round->events[i]);
    round->count = 0;
}

static void publish(struct pipeline *pipeline, const char *topic, const struct buffer *wire)
{
    const char *texts[] = {"SPUBLISH", topic, wire->data};
    const size_t lengths[] = {strlen("SPUBLISH"), strlen(topic), wire->length};
    pipeline_add(pipeline, 3, texts, lengths);
}

// The topic of the user or workspace that the event concerns, in addition to its channel or
// exclusively. False: none.
static bool event_own_topic(const struct event *event, char *ret_topic)
{
    switch (event->kind) {
    case EVENT_JOIN:
    case EVENT_LEAVE:
    case EVENT_MARK:
    case EVENT_THREAD_MARK:
    case EVENT_THREAD_FOLLOW:
        key_user_topic(ret_topic, event->user_id);
        return true;
    case EVENT_CREATED:
        if (event->is_private)
            key_user_topic(ret_topic, event->user_id);
        else
            key_workspace_topic(ret_topic, event->workspace_id);
        return true;
    default:
        return false;
    }
}

static void publish_event(struct round *round, struct pipeline *pipeline, const struct event *event)
{
    char topic[KEY_SIZE];
    buffer_clear(&round->wire);
    event_encode(event, &round->wire);
    if (buffer_failed(&round->wire)) {
        log_write(LOG_ERROR, "fanout", "out of memory: cannot publish an event of %s",
                  event->channel_id);
        return;
    }
    if (event->seq > 0 || event->kind == EVENT_STRATEGY) {
        key_channel_topic(topic, event->channel_id);
        publish(pipeline, topic, &round->wire);
    }
    if (event_own_topic(event, topic))
        publish(pipeline, topic, &round->wire);
}

void round_add(struct round *round, struct pipeline *pipeline)
{
    effects_add(pipeline, round->events, round->count);
    for (size_t i = 0; i < round->count; i++)
        if (event_kind_is_thread(round->events[i]->kind))
            effects_add_thread(pipeline, round->events[i], round->thread_read_s);
    for (size_t i = 0; i < round->count; i++)
        publish_event(round, pipeline, round->events[i]);
}

void round_add_forget(struct round *round, struct pipeline *pipeline)
{
    size_t first = 0;
    for (size_t i = 1; i <= round->count; i++) {
        if (i < round->count &&
            strcmp(round->events[i]->channel_id, round->events[first]->channel_id) == 0)
            continue;
        effects_forget(pipeline, round->events + first, i - first);
        first = i;
    }
}
