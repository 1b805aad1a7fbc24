// SPDX-License-Identifier: Apache-2.0
// Fan-out workers: threads that read events from the log and apply their effects to Redis.
#include "fanout/worker.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/wait.h"
#include "round.h"
#include "unread/member_walk.h"

enum { READ_MS = 500, PAUSE_FIRST_MS = 50, PAUSE_MAX_MS = 1000, REFUSED_TRIES = 3 };

// Events are published round by round; storing them costs a call of Postgres, so it is done for
// several rounds at once.
enum { STORE_EVERY_MS = 3, STORE_EVENTS = ROUND_MAX, STORE_BYTES = 1 << 20 };

struct worker {
    uint32_t tag;
    struct workers *workers;
    struct log *log;
    struct pipeline *pipeline;
    struct session *session;
    struct walker *walker;
    pthread_t thread;
    int index;
    struct event *unstored[STORE_EVENTS + ROUND_MAX]; // applied to Redis, not stored yet
    size_t unstored_count;
    size_t unstored_bytes; // of their frames
    int64_t store_at_ms;
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t stopping;
    bool stopped;
    int count; // started workers
    struct workers_options options;
    struct worker worker[];
};

static bool is_stopped(struct workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    bool stopped = workers->stopped;
    pthread_mutex_unlock(&workers->lock);
    return stopped;
}

// False: the workers are to stop.
static bool pause_for(struct workers *workers, int64_t pause_ms)
{
    int64_t until_ms = clock_monotonic_ms() + pause_ms;
    pthread_mutex_lock(&workers->lock);
    while (!workers->stopped && wait_until(&workers->stopping, &workers->lock, until_ms))
        ;
    bool stopped = workers->stopped;
    pthread_mutex_unlock(&workers->lock);
    return !stopped;
}

// Applies a round to Redis, waiting for as long as Redis is down. Commands that Redis keeps
// rejecting (no memory, no disk, a broken key) are abandoned, and what they would change is
// invalidated as far as Redis permits: readers then use Postgres, and gateways fill the gaps.
// False: the workers are to stop.
static bool round_finish(struct worker *worker, struct round *round)
{
    int64_t pause_ms = PAUSE_FIRST_MS;
    for (int refused = 0;;) {
        round_add(round, worker->pipeline);
        int r = pipeline_run(worker->pipeline, NULL, NULL);
        if (r == 0)
            return true;
        if (r != -ERROR_UNAVAILABLE && ++refused == REFUSED_TRIES)
            break;
        if (!pause_for(worker->workers, pause_ms))
            return false;
        pause_ms = pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause_ms * 2;
    }
    round_add_forget(round, worker->pipeline);
    metric_add(METRIC_EVENTS_REFUSED, (int64_t)round->count);
    log_write(LOG_ERROR, "fanout", "Redis refused the effects of %zu events%s", round->count,
              pipeline_run(worker->pipeline, NULL, NULL) < 0 ? " and to drop the keys they change"
                                                             : "");
    return true;
}

static void event_abandon(const struct event *event, int r)
{
    metric_add(METRIC_EVENTS_API_LOST, 1);
    log_row_aside("fanout", error_code(r), "event %" PRId64 " of channel %s, for pushes and apps",
                  event->seq, event->channel_id);
}

// Stores some of the collected events, waiting for as long as Postgres is down or busy. 1: the
// workers are to stop.
static int part_store(struct worker *worker, size_t first, size_t count)
{
    const struct workers_options *options = &worker->workers->options;
    for (;;) {
        int r = options->store(options->arg, worker->session, worker->unstored + first, count);
        if (r != -ERROR_UNAVAILABLE && r != -ERROR_BUSY)
            return r < 0 ? r : 0;
        if (!pause_for(worker->workers, PAUSE_MAX_MS))
            return 1;
    }
}

// Stores the collected events. Halves what Postgres rejects until the bad event is alone, and
// abandons that one if it is rejected repeatedly. False: the workers are to stop.
static bool unstored_flush(struct worker *worker)
{
    size_t done = worker->workers->options.store ? 0 : worker->unstored_count;
    size_t count = worker->unstored_count - done;
    for (int refused = 0; count > 0;) {
        int r = part_store(worker, done, count);
        if (r > 0)
            return false;
        if (r < 0 && count > 1) {
            count /= 2;
            continue;
        }
        if (r < 0 && ++refused < REFUSED_TRIES)
            continue;
        if (r < 0)
            event_abandon(worker->unstored[done], r);
        refused = 0;
        done += count;
        count = worker->unstored_count - done;
    }
    return true;
}

static void unstored_clear(struct worker *worker)
{
    for (size_t i = 0; i < worker->unstored_count; i++)
        event_unref(worker->unstored[i]);
    worker->unstored_count = 0;
    worker->unstored_bytes = 0;
}

// Takes ownership of a round's events.
static void unstored_add(struct worker *worker, struct round *round)
{
    if (worker->unstored_count == 0)
        worker->store_at_ms = clock_monotonic_ms() + STORE_EVERY_MS;
    for (size_t i = 0; i < round->count; i++) {
        worker->unstored[worker->unstored_count++] = round->events[i];
        worker->unstored_bytes += round->events[i]->frame_length;
    }
    round->count = 0;
}

static bool unstored_is_due(const struct worker *worker)
{
    return worker->unstored_count >= STORE_EVENTS || worker->unstored_bytes >= STORE_BYTES ||
           (worker->unstored_count > 0 && clock_monotonic_ms() >= worker->store_at_ms);
}

// Confirms everything read so far.
static void unstored_settle(struct worker *worker)
{
    if (unstored_flush(worker)) {
        log_commit(worker->log, worker->index);
        metric_add(METRIC_EVENTS_FANNED_OUT, (int64_t)worker->unstored_count);
    }
    unstored_clear(worker);
}

// How long a read may block.
static int64_t read_ms(const struct worker *worker)
{
    int64_t left_ms = worker->store_at_ms - clock_monotonic_ms();
    if (worker->unstored_count == 0)
        return READ_MS;
    return left_ms > 0 ? left_ms : 0;
}

// False: the workers are to stop, and not everything that was read is done.
static bool worker_step(struct worker *worker, struct round *round)
{
    int count = log_read(worker->log, worker->index, round->events, ROUND_MAX, read_ms(worker));
    if (count > 0) {
        round_order(round, (size_t)count);
        if (!round_finish(worker, round))
            return false;
        walker_run(worker->walker, round->events, round->count);
        unstored_add(worker, round);
    }
    if (unstored_is_due(worker))
        unstored_settle(worker);
    return true;
}

static void *worker_run(void *arg)
{
    struct worker *worker = CAST(worker, arg);
    struct round *round = memory_must_new(sizeof *round);
    bool is_done = true;
    round_init(round, worker->workers->options.thread_read_s);
    while (is_done && !is_stopped(worker->workers))
        is_done = worker_step(worker, round);
    if (is_done && worker->unstored_count > 0)
        unstored_settle(worker);
    unstored_clear(worker);
    round_clear(round);
    round_done(round);
    free(round);
    return NULL;
}

static void worker_free(struct worker *worker)
{
    walker_free(worker->walker);
    session_free(worker->session);
    pipeline_free(worker->pipeline);
}

static int worker_start(struct worker *worker, const struct workers_options *options)
{
    int r = pipeline_new(&options->cache, &worker->pipeline);
    if (r >= 0)
        r = session_new(options->database_url, options->statement_timeout_ms, &worker->session);
    if (r >= 0) {
        worker->walker = walker_new(worker->pipeline, worker->session);
        r = pthread_create(&worker->thread, NULL, worker_run, worker) == 0 ? 0 : -ERROR_MEMORY;
    }
    if (r < 0)
        worker_free(worker);
    return r;
}

int workers_start(struct log *log, const struct workers_options *options,
                  struct workers **ret_workers)
{
    struct workers *workers =
        memory_must_new(sizeof *workers + (size_t)options->count * sizeof workers->worker[0]);
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->stopping, NULL);
    workers->options = *options;
    for (int i = 0; i < options->count; i++) {
        struct worker *worker = &workers->worker[i];
        *worker = (struct worker){.tag = TAG(worker), .workers = workers, .log = log, .index = i};
        int r = worker_start(worker, options);
        if (r < 0) {
            workers_stop(workers, 0);
            return r;
        }
        workers->count++;
    }
    *ret_workers = workers;
    return 0;
}

void workers_stop(struct workers *workers, int64_t drain_ms)
{
    int64_t until_ms = clock_monotonic_ms() + drain_ms;
    if (!workers)
        return;
    pthread_mutex_lock(&workers->lock);
    workers->stopped = true;
    pthread_cond_broadcast(&workers->stopping);
    pthread_mutex_unlock(&workers->lock);
    for (int i = 0; i < workers->count; i++) {
        struct worker *worker = &workers->worker[i];
        session_join(worker->session, worker->thread, until_ms);
        worker_free(worker);
    }
    pthread_cond_destroy(&workers->stopping);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}
