// SPDX-License-Identifier: Apache-2.0
// The in-process log: a queue per worker, all under one lock, which is held only to move pointers.
// A read takes everything queued for the worker, within the limits. A row is answered once its last
// event is committed.
#include <pthread.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/wait.h"
#include "event_log_internal.h"

// An outbox row until all its events are committed.
struct log_row {
    struct list link; // in log_local.rows
    size_t left;      // events not yet committed
    char id[OUTBOX_ID_SIZE];
};

struct log_entry {
    struct event *event;
    struct log_row *row;
};

struct queue {
    pthread_cond_t filled;
    struct log_entry *ring; // `capacity` is 0 or a power of two
    size_t capacity;
    size_t first;
    size_t count;
    struct log_row **taken; // the row of each event read but not yet committed
    size_t taken_count;
    size_t taken_bytes;
    size_t taken_capacity;
};

struct log_local {
    struct log log; // must be first
    uint32_t tag;
    pthread_mutex_t lock;
    pthread_cond_t drained;
    struct list rows;
    size_t held; // events appended and not yet committed
    size_t held_max;
    size_t held_bytes; // bytes of their frames
    size_t held_bytes_max;
    size_t read_bytes;
    size_t queue_count;
    bool stopped;
    struct queue queues[];
};

static struct log_local *local_of(struct log *log)
{
    return CAST(log_local, log);
}

static struct queue *queue_of(struct log_local *local, const char *channel_id)
{
    uint32_t hash = 2166136261u;
    for (const char *at = channel_id; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    return &local->queues[hash % local->queue_count];
}

static void queue_grow(struct queue *queue)
{
    size_t capacity = queue->capacity ? 2 * queue->capacity : 64;
    struct log_entry *ring = memory_must_resize(NULL, capacity, sizeof *ring);
    for (size_t i = 0; i < queue->count; i++)
        ring[i] = queue->ring[(queue->first + i) & (queue->capacity - 1)];
    free(queue->ring);
    queue->ring = ring;
    queue->capacity = capacity;
    queue->first = 0;
}

static void queue_push(struct queue *queue, struct event *event, struct log_row *row)
{
    if (queue->count == queue->capacity)
        queue_grow(queue);
    queue->ring[(queue->first + queue->count) & (queue->capacity - 1)] =
        (struct log_entry){event, row};
    if (queue->count++ == 0)
        pthread_cond_signal(&queue->filled);
}

static struct log_entry queue_pop(struct queue *queue)
{
    ASSERT(queue->count > 0 && queue->first < queue->capacity);
    struct log_entry entry = queue->ring[queue->first];
    queue->first = (queue->first + 1) & (queue->capacity - 1);
    queue->count--;
    return entry;
}

static size_t bytes_of(struct event *const *events, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += events[i]->frame_length;
    return bytes;
}

// A row above the limits is accepted if nothing else is held.
static bool local_has_room(const struct log_local *local, size_t count, size_t bytes)
{
    if (local->stopped)
        return false;
    return local->held == 0 || (local->held + count <= local->held_max &&
                                local->held_bytes + bytes <= local->held_bytes_max);
}

static int local_append(struct log *log, const char *outbox_id, struct event *const *events,
                        size_t count)
{
    struct log_local *local = local_of(log);
    ASSERT(count > 0 && strlen(outbox_id) < OUTBOX_ID_SIZE);
    struct log_row *row = memory_must_new(sizeof *row);
    row->left = count;
    memcpy(row->id, outbox_id, strlen(outbox_id));

    size_t bytes = bytes_of(events, count);
    pthread_mutex_lock(&local->lock);
    bool fits = local_has_room(local, count, bytes);
    if (fits) {
        local->held += count;
        local->held_bytes += bytes;
        list_append(&local->rows, &row->link);
        for (size_t i = 0; i < count; i++)
            queue_push(queue_of(local, events[i]->channel_id), event_ref(events[i]), row);
    }
    pthread_mutex_unlock(&local->lock);
    if (fits)
        return 0;
    free(row);
    return -ERROR_BUSY;
}

// Waits for something to read. Call under the lock.
static bool queue_wait(struct log_local *local, struct queue *queue, int64_t timeout_ms)
{
    int64_t until_ms = clock_monotonic_ms() + timeout_ms;
    while (queue->count == 0 && !local->stopped)
        if (!wait_until(&queue->filled, &local->lock, until_ms))
            break;
    return queue->count > 0 && !local->stopped;
}

static void taken_reserve(struct queue *queue, size_t count)
{
    if (count <= queue->taken_capacity)
        return;
    queue->taken = memory_must_resize(queue->taken, count, sizeof *queue->taken);
    queue->taken_capacity = count;
}

static int local_read(struct log *log, int worker, struct event **ret_events, int max,
                      int64_t timeout_ms)
{
    struct log_local *local = local_of(log);
    ASSERT(worker >= 0 && (size_t)worker < local->queue_count);
    struct queue *queue = &local->queues[worker];
    pthread_mutex_lock(&local->lock);
    size_t most = queue_wait(local, queue, timeout_ms) ? queue->count : 0;
    size_t count = 0;
    if (most > (size_t)max)
        most = (size_t)max;
    taken_reserve(queue, queue->taken_count + most);
    size_t bytes = 0;
    for (; count < most && bytes < local->read_bytes; count++) {
        struct log_entry entry = queue_pop(queue);
        ret_events[count] = entry.event;
        queue->taken[queue->taken_count++] = entry.row;
        bytes += entry.event->frame_length;
    }
    queue->taken_bytes += bytes;
    pthread_mutex_unlock(&local->lock);
    return (int)count;
}

static void rows_answer(struct log_local *local, struct list *rows, int r)
{
    LIST_FOREACH(link, rows)
    {
        struct log_row *row = LIST_ITEM(link, struct log_row, link);
        local->log.done(local->log.arg, row->id, r);
        list_remove(link);
        free(row);
    }
}

static void local_commit(struct log *log, int worker)
{
    struct log_local *local = local_of(log);
    struct queue *queue = &local->queues[worker];
    struct list finished;
    list_init(&finished);
    pthread_mutex_lock(&local->lock);
    for (size_t i = 0; i < queue->taken_count; i++) {
        struct log_row *row = queue->taken[i];
        ASSERT(row->left > 0);
        if (--row->left > 0)
            continue;
        list_remove(&row->link);
        list_append(&finished, &row->link);
    }
    ASSERT(local->held >= queue->taken_count && local->held_bytes >= queue->taken_bytes);
    local->held -= queue->taken_count;
    local->held_bytes -= queue->taken_bytes;
    queue->taken_count = 0;
    queue->taken_bytes = 0;
    if (local->held == 0)
        pthread_cond_broadcast(&local->drained);
    pthread_mutex_unlock(&local->lock);
    rows_answer(local, &finished, 0);
}

static void local_stop(struct log *log, int64_t flush_ms)
{
    struct log_local *local = local_of(log);
    int64_t until_ms = clock_monotonic_ms() + flush_ms;
    pthread_mutex_lock(&local->lock);
    while (local->held > 0 && wait_until(&local->drained, &local->lock, until_ms))
        ;
    local->stopped = true;
    for (size_t i = 0; i < local->queue_count; i++)
        pthread_cond_broadcast(&local->queues[i].filled);
    pthread_mutex_unlock(&local->lock);
}

static void queue_free(struct queue *queue)
{
    while (queue->count > 0)
        event_unref(queue_pop(queue).event);
    free(queue->ring);
    free(queue->taken);
    pthread_cond_destroy(&queue->filled);
}

static void local_free(struct log *log)
{
    struct log_local *local = local_of(log);
    for (size_t i = 0; i < local->queue_count; i++)
        queue_free(&local->queues[i]);
    rows_answer(local, &local->rows, -ERROR_UNAVAILABLE);
    pthread_cond_destroy(&local->drained);
    pthread_mutex_destroy(&local->lock);
    TAGGED_FREE(local);
}

static bool local_is_ready(const struct log *log)
{
    (void)log;
    return true;
}

static const struct log_backend local_backend = {
    .stop = local_stop,
    .free = local_free,
    .is_ready = local_is_ready,
    .append = local_append,
    .read = local_read,
    .commit = local_commit,
};

int log_local_new(const struct log_options *options, log_done_fn *fn, void *arg,
                  struct log **ret_log)
{
    size_t count = (size_t)options->workers;
    struct log_local *local = memory_must_new(sizeof *local + count * sizeof local->queues[0]);
    local->tag = TAG(log_local);
    local->log = (struct log){.backend = &local_backend, .done = fn, .arg = arg};
    local->held_max = (size_t)options->queue_max;
    local->held_bytes_max = (size_t)options->queue_bytes;
    local->read_bytes = (size_t)options->read_bytes;
    local->queue_count = count;
    pthread_mutex_init(&local->lock, NULL);
    pthread_cond_init(&local->drained, NULL);
    list_init(&local->rows);
    for (size_t i = 0; i < count; i++)
        pthread_cond_init(&local->queues[i].filled, NULL);
    *ret_log = &local->log;
    return 0;
}
