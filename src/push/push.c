// SPDX-License-Identifier: Apache-2.0
// A thread that posts events to apps' URLs (Events API over HTTP), with retries.
#include "push/push.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_MS = 500, // must be well below the age at which an app gets its first challenge
    CLEAN_MS = 10000,
    KEEP_MAX = 512,             // events of one call
    WORKSPACES_MAX = 128 << 20, // bytes
};

struct push {
    uint32_t tag;
    struct push_options options;
    pthread_t thread;
    struct session *session; // of the thread
    CURLM *multi;
    struct list ready;     // taken, and not begun
    struct list under_way; // with curl
    struct list settled;   // over, and Postgres is not told yet
    int64_t count;         // of all three
    int64_t look_at_ms;
    int64_t clean_at_ms;
    atomic_bool wanted;      // something may be due
    atomic_llong stop_at_ms; // 0 while running

    pthread_mutex_t lock; // of what follows
    bool is_known;
    struct buffer workspaces; // whose events are wanted, sorted
};

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

// Whether an app may want the event. As long as nothing is known, Postgres is asked.
static bool is_wanted(const struct push *push, const struct event *event)
{
    if (event->seq == 0 || event->frame_length == 0)
        return false;
    return !push->is_known ||
           (push->workspaces.length > 0 &&
            bsearch(event->workspace_id, push->workspaces.data,
                    push->workspaces.length / EVENT_ID_SIZE, EVENT_ID_SIZE, compare_ids));
}

static size_t choose(struct push *push, struct event *const *events, size_t count,
                     struct event **ret_chosen)
{
    size_t chosen = 0;
    pthread_mutex_lock(&push->lock);
    for (size_t i = 0; i < count; i++)
        if (is_wanted(push, events[i]))
            ret_chosen[chosen++] = events[i];
    pthread_mutex_unlock(&push->lock);
    return chosen;
}

static int chosen_keep(struct push *push, struct session *session, struct event *const *events,
                       size_t count)
{
    int r = queue_add(session, events, count, &push->options);
    if (r > 0) {
        atomic_store(&push->wanted, true);
        curl_multi_wakeup(push->multi);
    }
    return r;
}

int push_keep(struct push *push, struct session *session, struct event *const *events, size_t count)
{
    struct event *chosen[KEEP_MAX];
    for (size_t done = 0; done < count;) {
        size_t part = count - done < KEEP_MAX ? count - done : KEEP_MAX;
        size_t wanted = choose(push, events + done, part, chosen);
        int r = wanted > 0 ? chosen_keep(push, session, chosen, wanted) : 0;
        if (r < 0)
            return r;
        done += part;
    }
    return 0;
}

// Learns whose events are wanted, and cleans up now and then.
static void look(struct push *push, int64_t now_ms)
{
    CLEANUP(buffer_done) struct buffer ids = BUFFER(WORKSPACES_MAX);
    push->look_at_ms = now_ms + LOOK_MS;
    atomic_store(&push->wanted, true);
    if (queue_workspaces(push->session, &ids) < 0)
        return;
    pthread_mutex_lock(&push->lock);
    struct buffer before = push->workspaces;
    push->workspaces = ids;
    push->is_known = true;
    pthread_mutex_unlock(&push->lock);
    ids = before;
    if (now_ms < push->clean_at_ms)
        return;
    int r = queue_clean(push->session, &push->options);
    push->clean_at_ms = now_ms + (r > 0 ? 0 : CLEAN_MS); // the rest at the next look
    if (r < 0)
        log_write(LOG_WARN, "push", "app_events could not be cleaned up");
}

static void take(struct push *push)
{
    int64_t room = push->options.parallel - push->count;
    if (room <= 0 || !list_is_empty(&push->settled) || !atomic_exchange(&push->wanted, false))
        return;
    if (queue_take(push->session, &push->under_way, room, &push->options, &push->ready) < 0)
        log_write(LOG_WARN, "push", "what waits for events_urls could not be read");
    LIST_FOREACH(link, &push->ready)
    {
        struct delivery *delivery = LIST_ITEM(link, struct delivery, link);
        list_remove(link);
        list_append(&push->under_way, link);
        push->count++;
        curl_multi_add_handle(push->multi, delivery->easy);
    }
}

static void harvest(struct push *push)
{
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(push->multi, &left))) {
        struct delivery *delivery = NULL;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &delivery);
        curl_multi_remove_handle(push->multi, delivery->easy);
        delivery_settle(delivery, code, &push->options);
        list_remove(&delivery->link);
        list_append(&push->settled, &delivery->link);
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

static int64_t length_of(const struct list *list)
{
    int64_t length = 0;
    LIST_FOREACH(link, list)
    {
        length++;
    }
    return length;
}

// Tells Postgres what is over. While it is away nothing new begins.
static void settle(struct push *push)
{
    if (list_is_empty(&push->settled) || queue_settle(push->session, &push->settled) < 0)
        return;
    push->count -= length_of(&push->settled);
    deliveries_free(&push->settled);
    atomic_store(&push->wanted, true); // there is room, and a retry may be due
}

static void turn(struct push *push)
{
    int running;
    int64_t now_ms = clock_monotonic_ms();
    bool is_stopping = atomic_load(&push->stop_at_ms) != 0;
    if (!is_stopping && now_ms >= push->look_at_ms)
        look(push, now_ms);
    if (!is_stopping)
        take(push);
    curl_multi_perform(push->multi, &running);
    harvest(push);
    settle(push);
    log_flush();
    bool can_take = push->count < push->options.parallel && list_is_empty(&push->settled);
    if (!atomic_load(&push->wanted) || !can_take || is_stopping)
        curl_multi_poll(push->multi, NULL, 0, LOOK_MS / 4, NULL);
}

static bool is_over(struct push *push)
{
    int64_t stop_at_ms = atomic_load(&push->stop_at_ms);
    return stop_at_ms != 0 && (push->count == 0 || clock_monotonic_ms() >= stop_at_ms);
}

static void *push_run(void *arg)
{
    struct push *push = CAST(push, arg);
    while (!is_over(push))
        turn(push);
    return NULL;
}

static void push_free(struct push *push)
{
    LIST_FOREACH(link, &push->under_way)
    {
        curl_multi_remove_handle(push->multi, LIST_ITEM(link, struct delivery, link)->easy);
    }
    deliveries_free(&push->under_way);
    deliveries_free(&push->settled);
    curl_multi_cleanup(push->multi);
    session_free(push->session);
    buffer_done(&push->workspaces);
    pthread_mutex_destroy(&push->lock);
    TAGGED_FREE(push);
    curl_global_cleanup();
}

static int push_make(struct push *push)
{
    const struct push_options *options = &push->options;
    push->multi = curl_multi_init();
    if (!push->multi)
        return -ERROR_MEMORY;
    curl_multi_setopt(push->multi, CURLMOPT_MAXCONNECTS, (long)options->parallel);
    return session_new(options->database_url, options->statement_timeout_ms, &push->session);
}

int push_start(const struct push_options *options, struct push **ret_push)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return -ERROR_MEMORY;
    struct push *push = memory_must_new(sizeof *push);
    push->tag = TAG(push);
    push->options = *options;
    list_init(&push->ready);
    list_init(&push->under_way);
    list_init(&push->settled);
    pthread_mutex_init(&push->lock, NULL);
    int r = push_make(push);
    if (r >= 0 && pthread_create(&push->thread, NULL, push_run, push) != 0)
        r = -ERROR_MEMORY;
    if (r < 0) {
        push_free(push);
        return r;
    }
    *ret_push = push;
    return 0;
}

void push_stop(struct push *push, int64_t drain_ms)
{
    if (!push)
        return;
    int64_t stop_at_ms = clock_monotonic_ms() + drain_ms;
    atomic_store(&push->stop_at_ms, stop_at_ms);
    curl_multi_wakeup(push->multi);
    session_join(push->session, push->thread, stop_at_ms);
    push_free(push);
}
