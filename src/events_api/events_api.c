// SPDX-License-Identifier: Apache-2.0
// The thread that posts events to apps' URLs (Events API over HTTP), with retries.
#include "events_api/events_api.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/wait.h"
#include "chat/workspace_ids.h"
#include "queue.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    REFRESH_MS = 500, // must be well below the age at which an app gets its first challenge
    TURN_MS = REFRESH_MS / 4,
    CLEAN_MS = 10000,
    PART_MAX = 512,             // events per call
    WORKSPACES_MAX = 128 << 20, // bytes
};

struct events_api {
    uint32_t tag;
    struct events_api_options options;
    struct outbound *outbound; // its thread is meant below
    struct session *session;   // the thread's
    struct list under_way;     // held by `outbound`
    struct list settled;       // ended, not stored in Postgres yet
    int64_t count;             // of both
    int64_t refresh_at_ms;
    int64_t clean_at_ms;
    atomic_bool wanted; // something may be due
    atomic_bool is_stopping;

    pthread_mutex_t lock; // protects everything below
    pthread_cond_t changed;
    bool is_drained; // stopping, and nothing is under way or settled
    bool is_known;
    struct buffer workspaces; // with apps that receive events, sorted
};

// Whether an app may receive the event. Until the workspaces are known, all of them count.
static bool is_wanted(const struct events_api *events_api, const struct event *event)
{
    if (event->seq == 0 || event->frame_length == 0)
        return false;
    return !events_api->is_known ||
           workspace_ids_have(&events_api->workspaces, event->workspace_id);
}

static size_t choose(struct events_api *events_api, struct event *const *events, size_t count,
                     struct event **ret_chosen)
{
    size_t chosen = 0;
    pthread_mutex_lock(&events_api->lock);
    for (size_t i = 0; i < count; i++)
        if (is_wanted(events_api, events[i]))
            ret_chosen[chosen++] = events[i];
    pthread_mutex_unlock(&events_api->lock);
    return chosen;
}

static int chosen_store(struct events_api *events_api, struct session *session,
                        struct event *const *events, size_t count)
{
    int r = queue_add(session, events, count, &events_api->options);
    if (r > 0) {
        atomic_store(&events_api->wanted, true);
        outbound_wake(events_api->outbound);
    }
    return r;
}

int events_api_store(struct events_api *events_api, struct session *session,
                     struct event *const *events, size_t count)
{
    struct event *chosen[PART_MAX];
    for (size_t done = 0; done < count;) {
        size_t part = count - done < PART_MAX ? count - done : PART_MAX;
        size_t wanted = choose(events_api, events + done, part, chosen);
        int r = wanted > 0 ? chosen_store(events_api, session, chosen, wanted) : 0;
        if (r < 0)
            return r;
        done += part;
    }
    return 0;
}

// Reads which workspaces have such apps, and periodically deletes expired rows.
static void workspaces_refresh(struct events_api *events_api, int64_t now_ms)
{
    CLEANUP(buffer_done) struct buffer ids = BUFFER(WORKSPACES_MAX);
    events_api->refresh_at_ms = now_ms + REFRESH_MS;
    atomic_store(&events_api->wanted, true);
    if (queue_workspaces(events_api->session, &ids) < 0)
        return;
    pthread_mutex_lock(&events_api->lock);
    struct buffer before = events_api->workspaces;
    events_api->workspaces = ids;
    events_api->is_known = true;
    pthread_mutex_unlock(&events_api->lock);
    ids = before;
    if (now_ms < events_api->clean_at_ms)
        return;
    int r = queue_clean(events_api->session, &events_api->options);
    events_api->clean_at_ms = now_ms + (r > 0 ? 0 : CLEAN_MS); // the rest at the next refresh
    if (r < 0)
        log_write(LOG_WARN, "events_api", "cannot clean up app_events");
}

static void delivery_end(struct events_api *events_api, struct delivery *delivery,
                         const struct outbound_answer *answer)
{
    delivery_settle(delivery, answer, &events_api->options);
    list_remove(&delivery->link);
    list_append(&events_api->settled, &delivery->link);
}

static void on_answer(void *arg, const struct outbound_answer *answer)
{
    struct delivery *delivery = CAST(delivery, arg);

    if (answer->failure != OUTBOUND_STOPPED) // the event is due again when its lease expires
        delivery_end(CAST(events_api, delivery->arg), delivery, answer);
}

static void delivery_send(struct events_api *events_api, struct delivery *delivery)
{
    const struct outbound_answer unsent = {.failure = OUTBOUND_OTHER, .retry_after_s = -1};

    delivery->arg = events_api;
    events_api->count++;
    list_append(&events_api->under_way, &delivery->link);
    int r = -ERROR_MEMORY;
    if (delivery->is_built)
        r = outbound_send(events_api->outbound, &delivery->request, on_answer, delivery);
    if (r == -ERROR_MEMORY)
        log_row_aside("events_api", "cannot be built",
                      "request to app %s, event %" PRId64 " of channel %s", delivery->app_id,
                      delivery->seq, delivery->channel_id);
    if (r < 0)
        delivery_end(events_api, delivery, &unsent);
}

static void take(struct events_api *events_api)
{
    struct list ready;
    int64_t room = events_api->options.settings.events_api_parallel - events_api->count;
    if (room <= 0 || !list_is_empty(&events_api->settled) ||
        !atomic_exchange(&events_api->wanted, false))
        return;
    list_init(&ready);
    if (queue_take(events_api->session, &events_api->under_way, room, &events_api->options,
                   &ready) < 0)
        log_write(LOG_WARN, "events_api", "cannot read events queued for events_urls");
    LIST_FOREACH(link, &ready)
    {
        list_remove(link);
        delivery_send(events_api, LIST_ITEM(link, struct delivery, link));
    }
}

static void deliveries_free(struct list *deliveries)
{
    LIST_FOREACH(link, deliveries)
    {
        list_remove(link);
        delivery_free(LIST_ITEM(link, struct delivery, link));
    }
}

static void outcome_aside(const struct delivery *delivery)
{
    log_row_aside("events_api", "rejected by Postgres",
                  "outcome of a request to app %s, event %" PRId64 " of channel %s",
                  delivery->app_id, delivery->seq, delivery->channel_id);
}

// Stores outcomes in Postgres. While it is down, nothing new is taken. Those that it rejects
// together are stored one by one; an event whose outcome it rejects is due again when its lease
// expires.
static void settle(struct events_api *events_api)
{
    size_t most = SIZE_MAX;
    while (!list_is_empty(&events_api->settled)) {
        struct list part;
        list_init(&part);
        list_move(&part, &events_api->settled, most);
        int r = queue_settle(events_api->session, &part);
        bool is_rejected = r == -ERROR_INTERNAL;
        if (r < 0 && (!is_rejected || most > 1)) {
            list_append_all(&events_api->settled, &part);
            if (!is_rejected)
                return;
            most = 1;
            continue;
        }
        if (is_rejected)
            outcome_aside(LIST_ITEM(part.next, struct delivery, link));
        events_api->count -= (int64_t)list_length(&part);
        deliveries_free(&part);
        atomic_store(&events_api->wanted, true); // there is room, and a retry may be due
    }
}

// Lets events_api_stop() go on, once there is nothing to wait for.
static void drained_tell(struct events_api *events_api)
{
    pthread_mutex_lock(&events_api->lock);
    events_api->is_drained = events_api->count == 0;
    pthread_cond_signal(&events_api->changed);
    pthread_mutex_unlock(&events_api->lock);
}

static int64_t on_turn(void *arg)
{
    struct events_api *events_api = CAST(events_api, arg);
    int64_t now_ms = clock_monotonic_ms();
    settle(events_api);
    if (atomic_load(&events_api->is_stopping)) {
        drained_tell(events_api);
        return TURN_MS;
    }
    if (now_ms >= events_api->refresh_at_ms)
        workspaces_refresh(events_api, now_ms);
    take(events_api);
    bool can_take = events_api->count < events_api->options.settings.events_api_parallel &&
                    list_is_empty(&events_api->settled);
    return atomic_load(&events_api->wanted) && can_take ? 0 : TURN_MS;
}

static void events_api_free(struct events_api *events_api)
{
    outbound_free(events_api->outbound);
    deliveries_free(&events_api->under_way);
    deliveries_free(&events_api->settled);
    session_free(events_api->session);
    buffer_done(&events_api->workspaces);
    pthread_cond_destroy(&events_api->changed);
    pthread_mutex_destroy(&events_api->lock);
    TAGGED_FREE(events_api);
}

static int events_api_make(struct events_api *events_api)
{
    const struct events_api_options *options = &events_api->options;
    const struct outbound_options outbound_options = {
        .requests_max = options->settings.events_api_parallel,
        .bytes_max = options->settings.events_api_parallel * DELIVERY_BYTES_MAX,
        .on_turn = on_turn,
        .arg = events_api,
    };
    int r = session_new(options->database_url, options->statement_timeout_ms, &events_api->session);
    return r < 0 ? r : outbound_start(&outbound_options, &events_api->outbound);
}

int events_api_start(const struct events_api_options *options, struct events_api **ret_events_api)
{
    struct events_api *events_api = memory_must_new(sizeof *events_api);
    events_api->tag = TAG(events_api);
    events_api->options = *options;
    list_init(&events_api->under_way);
    list_init(&events_api->settled);
    pthread_mutex_init(&events_api->lock, NULL);
    pthread_cond_init(&events_api->changed, NULL);
    int r = events_api_make(events_api);
    if (r < 0) {
        events_api_free(events_api);
        return r;
    }
    *ret_events_api = events_api;
    return 0;
}

void events_api_stop(struct events_api *events_api, int64_t drain_ms)
{
    if (!events_api)
        return;
    int64_t stop_at_ms = clock_monotonic_ms() + drain_ms;
    atomic_store(&events_api->is_stopping, true);
    outbound_wake(events_api->outbound);
    pthread_mutex_lock(&events_api->lock);
    while (!events_api->is_drained &&
           wait_until(&events_api->changed, &events_api->lock, stop_at_ms))
        ;
    pthread_mutex_unlock(&events_api->lock);
    session_stop(events_api->session); // Postgres may hang
    outbound_stop(events_api->outbound);
    events_api_free(events_api);
}
