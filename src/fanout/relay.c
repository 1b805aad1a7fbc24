// SPDX-License-Identifier: Apache-2.0
// The relay: a thread that appends outbox rows to the log and deletes them when their effects are
// done. One table holds every row in memory, from its submission until it is gone from Postgres;
// this bounds the rows and keeps polling from taking rows already in progress. A row that cannot
// proceed is dropped from memory: it is still in Postgres, and polling finds it again.
#include "fanout/relay.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/wait.h"
#include "outbox.h"
#include "rows.h"
#include "store/session.h"

enum {
    POLLED_MAX = 512, // rows found by polling and still in progress
    BEHIND_MAX = 32,  // rows without bodies that a row with bodies waits behind
    GATHER_MS = 100,  // how long done rows are collected
    RETRY_MS = 1000,  // until the next attempt to delete
    POLL_BACKOFF_MAX = 4,
    LOAD_TRIES = 3
};

struct relay {
    uint32_t tag;
    struct relay_options options;
    relay_load_fn *load;
    struct log *log;
    struct session *session; // the thread's
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; // protects everything below
    pthread_cond_t changed;
    struct rows rows;
    int64_t clean_at_ms; // when done rows are deleted next
    int64_t poll_at_ms;
    int64_t poll_backoff; // doubled while polled rows cannot proceed
    bool poll_failed;     // since the last poll
    int64_t stop_at_ms;   // 0: running
};

static void row_set_events(struct row *row, struct event *const *events, size_t count)
{
    row->events = count > 0 ? memory_must_resize(NULL, count, sizeof(struct event *)) : NULL;
    row->event_count = count;
    for (size_t i = 0; i < count; i++)
        row->events[i] = event_ref(events[i]);
}

// Whether a row with bodies must wait for rows being read back, so that a channel's events stay in
// order. Not if many wait: the order only saves work later.
static bool must_wait(const struct relay *relay)
{
    return relay->rows.waiting_count > 0 && relay->rows.waiting_count <= BEHIND_MAX;
}

static void row_wait(struct relay *relay, struct row *row)
{
    rows_move(&relay->rows, row, ROW_WAITING);
    pthread_cond_signal(&relay->changed);
}

// Drops a row that cannot proceed and leaves it to polling, which slows down if the row came from
// there.
static void row_leave(struct relay *relay, struct row *row)
{
    relay->poll_failed = relay->poll_failed || row->polled;
    rows_remove(&relay->rows, row);
}

static void row_finish(struct relay *relay, struct row *row)
{
    rows_move(&relay->rows, row, ROW_DONE);
    size_t count = relay->rows.done_count;
    if (count != 1 && count != OUTBOX_BATCH_MAX)
        return;
    relay->clean_at_ms = clock_monotonic_ms() + (count == 1 ? GATHER_MS : 0);
    pthread_cond_signal(&relay->changed);
}

// The log has finished with a row.
static void on_done(void *arg, const char *outbox_id, int r)
{
    struct relay *relay = CAST(relay, arg);
    pthread_mutex_lock(&relay->lock);
    struct row *row = rows_find(&relay->rows, outbox_id);
    if (row && row->state == ROW_IN_LOG) {
        if (row->later)
            pthread_cond_signal(&relay->changed); // the next row of its kind may proceed
        if (r == 0)
            row_finish(relay, row);
        else
            row_leave(relay, row);
    }
    pthread_mutex_unlock(&relay->lock);
    if (r == 0)
        metric_add(METRIC_OUTBOX_RELAYED, 1);
}

static void row_appended(struct relay *relay, const char *outbox_id, int r)
{
    if (r >= 0)
        return;
    metric_add(METRIC_OUTBOX_QUEUE_FULL, 1);
    pthread_mutex_lock(&relay->lock);
    struct row *row = rows_find(&relay->rows, outbox_id);
    if (row)
        row_leave(relay, row);
    pthread_mutex_unlock(&relay->lock);
}

void relay_submit(struct relay *relay, const char *outbox_id, struct event *const *events,
                  size_t count)
{
    ASSERT(outbox_id[0] != '\0' && (events || count == 0));
    pthread_mutex_lock(&relay->lock);
    bool known = rows_find(&relay->rows, outbox_id) != NULL; // polling was faster
    struct row *row = rows_add(&relay->rows, outbox_id);
    bool waits = row && (count == 0 || must_wait(relay));
    if (waits) {
        row_set_events(row, events, count);
        row_wait(relay, row);
    } else if (row) {
        rows_move(&relay->rows, row, ROW_IN_LOG);
    }
    pthread_mutex_unlock(&relay->lock);
    if (!known && !row)
        metric_add(METRIC_OUTBOX_QUEUE_FULL, 1);
    if (row && !waits)
        row_appended(relay, outbox_id, log_append(relay->log, outbox_id, events, count));
}

void relay_submit_later(struct relay *relay, const char *outbox_id)
{
    pthread_mutex_lock(&relay->lock);
    bool known = rows_find(&relay->rows, outbox_id) != NULL;
    struct row *row = rows_add(&relay->rows, outbox_id);
    if (row) {
        row->later = true;
        row_wait(relay, row);
    }
    pthread_mutex_unlock(&relay->lock);
    if (!known && !row)
        metric_add(METRIC_OUTBOX_QUEUE_FULL, 1);
}

void relay_forget(struct relay *relay, const char *outbox_id)
{
    pthread_mutex_lock(&relay->lock);
    struct row *row = rows_add(&relay->rows, outbox_id);
    if (row)
        row_finish(relay, row);
    pthread_mutex_unlock(&relay->lock);
}

// Reads the bodies of a waiting row back, on the relay's thread. Negative: temporary or permanent
// failure.
static int row_load(struct relay *relay, struct row *row)
{
    int count = relay->load(relay->session, row->id, &row->events);
    row->event_count = count > 0 ? (size_t)count : 0;
    return count;
}

// Handles a row whose bodies could not be read. While Postgres is down, it is left to polling. A
// row that Postgres rejects three times, some time apart, is abandoned; readers and gateways find
// its events by comparing heads.
static void row_load_failed(struct relay *relay, struct row *row, int r)
{
    bool refused = r != -ERROR_UNAVAILABLE && r != -ERROR_BUSY && r != -ERROR_MEMORY;
    if (!refused) {
        row_leave(relay, row);
    } else if (++row->tries < LOAD_TRIES) {
        rows_move(&relay->rows, row, ROW_DEFERRED);
    } else {
        log_write(LOG_ERROR, "fanout", "gave up outbox row %s: %s", row->id, error_code(r));
        metric_add(METRIC_EVENTS_POISON, 1);
        rows_set_polled(&relay->rows, row); // marked as done and kept for a while, for inspection
        row_finish(relay, row);
    }
}

// Appends a waiting row to the log. Called with the lock, which is released meanwhile; the row
// stays valid, since only this thread moves waiting rows.
static void row_advance(struct relay *relay, struct row *row)
{
    pthread_mutex_unlock(&relay->lock);
    int r = row->event_count > 0 ? (int)row->event_count : row_load(relay, row);
    pthread_mutex_lock(&relay->lock);
    if (r < 0) {
        row_load_failed(relay, row, r);
        return;
    }
    if (r == 0) { // the row is gone, or has no events left
        row_finish(relay, row);
        return;
    }
    struct event **events = TAKE(row->events);
    size_t count = row->event_count;
    char id[OUTBOX_ID_SIZE];
    memcpy(id, row->id, sizeof id);
    row->event_count = 0;
    rows_move(&relay->rows, row, ROW_IN_LOG);
    // From here on the log may finish with the row, and it may be freed, at any moment.
    pthread_mutex_unlock(&relay->lock);
    row_appended(relay, id, log_append(relay->log, id, events, count));
    for (size_t i = 0; i < count; i++)
        event_unref(events[i]);
    free(events);
    pthread_mutex_lock(&relay->lock);
}

static void relay_clean(struct relay *relay)
{
    struct outbox_batch batch = {0};
    struct list taken;
    list_init(&taken);
    rows_take_done(&relay->rows, OUTBOX_BATCH_MAX, &taken);
    LIST_FOREACH(link, &taken)
    {
        struct row *row = LIST_ITEM(link, struct row, link);
        outbox_batch_add(&batch, row->id, row->polled);
    }
    pthread_mutex_unlock(&relay->lock);
    int r = outbox_clean(relay->session, &batch);
    pthread_mutex_lock(&relay->lock);
    rows_settle_done(&relay->rows, &taken, r >= 0);
    bool more = relay->rows.done_count >= OUTBOX_BATCH_MAX;
    relay->clean_at_ms = clock_monotonic_ms() + (r < 0 ? RETRY_MS : more ? 0 : GATHER_MS);
}

static void leftover_add(struct relay *relay, const char *outbox_id)
{
    struct row *row = rows_add(&relay->rows, outbox_id);
    if (!row)
        return;
    rows_set_polled(&relay->rows, row);
    rows_move(&relay->rows, row, ROW_WAITING);
    metric_add(METRIC_OUTBOX_LEFTOVERS, 1);
}

// Takes old rows that still exist: their writer died or could not submit them.
static void relay_poll(struct relay *relay)
{
    int64_t wanted = POLLED_MAX - relay->rows.polled_count;
    rows_retry_deferred(&relay->rows);
    relay->poll_backoff = relay->poll_failed ? relay->poll_backoff * 2 : 1;
    if (relay->poll_backoff > POLL_BACKOFF_MAX)
        relay->poll_backoff = POLL_BACKOFF_MAX;
    relay->poll_failed = false;
    relay->poll_at_ms =
        clock_monotonic_ms() + relay->options.leftover_poll_ms * relay->poll_backoff;
    if (wanted <= 0 || !log_is_ready(relay->log))
        return;
    pthread_mutex_unlock(&relay->lock);
    struct outbox_ids ids = {0};
    int count = outbox_leftovers(relay->session, relay->options.leftover_age_ms, wanted, &ids);
    pthread_mutex_lock(&relay->lock);
    for (int i = 0; i < count; i++)
        leftover_add(relay, outbox_ids_at(&ids, i));
    outbox_ids_done(&ids);
}

static bool is_finished(const struct relay *relay)
{
    if (relay->stop_at_ms == 0)
        return false;
    return rows_count(&relay->rows) == 0 || clock_monotonic_ms() >= relay->stop_at_ms;
}

static int64_t next_at_ms(const struct relay *relay)
{
    int64_t at_ms = relay->stop_at_ms > 0 ? relay->stop_at_ms : relay->poll_at_ms;
    if (relay->rows.done_count > 0 && relay->clean_at_ms < at_ms)
        at_ms = relay->clean_at_ms;
    return at_ms;
}

// Runs the most urgent task, or waits for one.
static void relay_turn(struct relay *relay)
{
    int64_t now_ms = clock_monotonic_ms();
    struct row *row = rows_first_waiting(&relay->rows);
    if (relay->rows.done_count > 0 && now_ms >= relay->clean_at_ms)
        relay_clean(relay);
    else if (row)
        row_advance(relay, row);
    else if (relay->stop_at_ms == 0 && now_ms >= relay->poll_at_ms)
        relay_poll(relay);
    else
        (void)wait_until(&relay->changed, &relay->lock, next_at_ms(relay));
}

static void *relay_run(void *arg)
{
    struct relay *relay = CAST(relay, arg);
    pthread_mutex_lock(&relay->lock);
    while (!is_finished(relay))
        relay_turn(relay);
    pthread_mutex_unlock(&relay->lock);
    return NULL;
}

int relay_new(const struct relay_options *options, struct log_options *log_options,
              relay_load_fn *load, struct relay **ret_relay)
{
    struct relay *relay = memory_must_new(sizeof *relay);
    relay->tag = TAG(relay);
    relay->options = *options;
    relay->load = load;
    relay->poll_backoff = 1;
    rows_init(&relay->rows, (size_t)options->queue_max);
    pthread_mutex_init(&relay->lock, NULL);
    pthread_cond_init(&relay->changed, NULL);
    int r = session_new(options->database_url, options->statement_timeout_ms, &relay->session);
    if (r >= 0)
        r = session_relax(relay->session); // a lost delete is repeated
    if (r >= 0)
        r = log_new(log_options, on_done, relay, &relay->log);
    if (r < 0) {
        relay_free(relay);
        return r;
    }
    *ret_relay = relay;
    return 0;
}

struct log *relay_log(struct relay *relay)
{
    return relay->log;
}

int relay_start(struct relay *relay)
{
    if (pthread_create(&relay->thread, NULL, relay_run, relay) != 0)
        return -ERROR_MEMORY;
    relay->started = true;
    return 0;
}

void relay_stop(struct relay *relay, int64_t drain_ms)
{
    if (!relay->started)
        return;
    int64_t stop_at_ms = clock_monotonic_ms() + drain_ms;
    pthread_mutex_lock(&relay->lock);
    relay->stop_at_ms = stop_at_ms;
    pthread_cond_signal(&relay->changed);
    pthread_mutex_unlock(&relay->lock);
    session_join(relay->session, relay->thread, stop_at_ms);
    relay->started = false;
}

void relay_free(struct relay *relay)
{
    if (!relay)
        return;
    log_free(relay->log);
    rows_done(&relay->rows);
    session_free(relay->session);
    pthread_cond_destroy(&relay->changed);
    pthread_mutex_destroy(&relay->lock);
    TAGGED_FREE(relay);
}
