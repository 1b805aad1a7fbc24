// SPDX-License-Identifier: Apache-2.0
// Fan-out workers: threads that read events from the log and apply their effects to Redis.
#include "fanout/worker.h"

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
#include "unread/walk.h"

enum { READ_MS = 500, PAUSE_FIRST_MS = 50, PAUSE_MAX_MS = 1000, REFUSED_TRIES = 3 };

struct worker {
    uint32_t tag;
    struct workers *workers;
    struct log *log;
    struct pipeline *pipeline;
    struct session *session;
    struct walker *walker;
    pthread_t thread;
    int index;
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t stopping;
    bool stopped;
    int count; // started
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

// False when the workers are to stop.
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

// Brings a round to Redis, however long that is away. What Redis refuses again and again (no
// memory, no disk, a broken key) is made unknown there as far as it lets us, and left: readers ask
// Postgres then, and gateways fill the holes. False when the workers are to stop first.
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
              pipeline_run(worker->pipeline, NULL, NULL) < 0 ? ", and to forget what they change"
                                                             : "");
    return true;
}

// Has a round kept; what is refused again and again is given up. False when the workers are to stop
// first.
static bool round_keep(struct worker *worker, const struct round *round)
{
    const struct workers_options *options = &worker->workers->options;
    for (int refused = 0; options->keep && refused < REFUSED_TRIES;) {
        int r = options->keep(options->arg, worker->session, round->events, round->count);
        if (r >= 0)
            return true;
        refused += r != -ERROR_UNAVAILABLE && r != -ERROR_BUSY;
        if (!pause_for(worker->workers, PAUSE_MAX_MS))
            return false;
    }
    if (options->keep)
        metric_add(METRIC_PUSH_LOST, (int64_t)round->count);
    return true;
}

static void *worker_run(void *arg)
{
    struct worker *worker = CAST(worker, arg);
    struct round *round = memory_must_new(sizeof *round);
    round_init(round, worker->workers->options.thread_read_s);
    while (!is_stopped(worker->workers)) {
        int count = log_read(worker->log, worker->index, round->events, ROUND_MAX, READ_MS);
        if (count == 0)
            continue;
        round_order(round, (size_t)count);
        if (round_finish(worker, round) && round_keep(worker, round)) {
            walker_run(worker->walker, round->events, round->count);
            log_commit(worker->log, worker->index);
            metric_add(METRIC_EVENTS_FANNED_OUT, count);
        }
        round_clear(round);
    }
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
