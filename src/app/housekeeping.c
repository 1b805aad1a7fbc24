// SPDX-License-Identifier: Apache-2.0
// A thread for periodic work: partitions, retention, expired rows, changes of strategy, folded
// names, member lists in Redis, old versions, and measurements of Postgres.
#include "housekeeping.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/wait.h"
#include "file_sweep.h"
#include "folding.h"
#include "measures.h"
#include "parts.h"
#include "store/session.h"
#include "unread/member_lists.h"
#include "upkeep.h"
#include "versions.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    INTERVAL_S = 3600,
    MEASURES_INTERVAL_S = 1,
    CALM_INTERVAL_S = 5,
    FOLDING_INTERVAL_S = 1,
    HOT_QUIET_US = 10 * 1000 * 1000,
    MONTHS_INTERVAL_S = 10,    // the instance working on a month may have died
    PARTITIONS_INTERVAL_S = 5, // Postgres' clock may leap, such as after its machine was suspended
    RETRY_S = 10,
    BUSY_S = 60,
    ELSEWHERE_S = 5,
    STATEMENT_TIMEOUT_MS = 5000,
    MOVES_PAGE = 500
};

static const struct statement PARTITIONS = {"partitions", "SELECT message_partitions_make()"};
static const struct statement OUTBOX_START = {"outbox_start_move", "SELECT outbox_start_move()"};
static const struct statement CALM = {"hot_channels_calm", "SELECT hot_channels_calm($1, $2)"};
static const struct statement STRATEGIES = {"strategies_auto",
                                            "SELECT last FROM strategies_auto($1, $2, $3, $4)"};

struct housekeeping {
    uint32_t tag;
    const struct settings *settings;
    const struct storage *storage; // NULL: there are no files
    struct session *session;
    struct pipeline *pipeline;
    struct upkeep *upkeep;
    struct measures measures;
    struct folding folding;
    int64_t months_due_ms; // when to look for the next expired month
    pthread_t thread;
    pthread_mutex_t lock; // guards stopping
    pthread_cond_t stop;
    bool stopping;
};

static bool is_stopping(struct housekeeping *housekeeping)
{
    pthread_mutex_lock(&housekeeping->lock);
    bool stopping = housekeeping->stopping;
    pthread_mutex_unlock(&housekeeping->lock);
    return stopping;
}

// Waits. False: time to stop.
static bool pause_until(void *arg, int64_t until_ms)
{
    struct housekeeping *housekeeping = CAST(housekeeping, arg);

    pthread_mutex_lock(&housekeeping->lock);
    while (!housekeeping->stopping &&
           wait_until(&housekeeping->stop, &housekeeping->lock, until_ms))
        ;
    bool stopping = housekeeping->stopping;
    pthread_mutex_unlock(&housekeeping->lock);
    return !stopping;
}

static int months_drop(struct housekeeping *housekeeping)
{
    bool begins = clock_monotonic_ms() >= housekeeping->months_due_ms;
    int r = upkeep_months(housekeeping->upkeep, begins);

    if (begins && r == UPKEEP_DONE)
        housekeeping->months_due_ms = clock_monotonic_ms() + 1000 * INTERVAL_S;
    return r;
}

static int rows_delete(struct housekeeping *housekeeping)
{
    return upkeep_rows(housekeeping->upkeep);
}

static int partitions_make(struct housekeeping *housekeeping)
{
    CLEANUP_RESULT struct result *result = NULL;

    return session_call(housekeeping->session, &PARTITIONS, NULL, &result);
}

// Switches channels with strategy auto that have outgrown their strategy, one page: those after the
// id `last`. Relays find their outbox row. `last`: "" after the last page.
static int strategies_page(struct housekeeping *housekeeping, char last[EVENT_ID_SIZE])
{
    CLEANUP_RESULT struct result *result = NULL;
    const struct settings *settings = housekeeping->settings;
    struct params params = {0};
    char outbox_id[ID_SIZE];

    id_make('S', outbox_id);
    params_text(&params, outbox_id);
    params_open_int_array(&params);
    params_element_int(&params, settings->auto_zset_members);
    params_element_int(&params, settings->auto_counter_members);
    params_element_int(&params, settings->auto_bitmap_members);
    params_close_array(&params);
    params_text(&params, last);
    params_int(&params, MOVES_PAGE);
    int r = session_call(housekeeping->session, &STRATEGIES, &params, &result);
    if (r >= 0)
        snprintf(last, EVENT_ID_SIZE, "%s", result_text(result, 0, 0));
    return r;
}

static int strategies_move(struct housekeeping *housekeeping)
{
    char last[EVENT_ID_SIZE] = "";
    int r;

    do
        r = strategies_page(housekeeping, last);
    while (r >= 0 && last[0] != '\0' && !is_stopping(housekeeping));
    return r;
}

static int members_check(struct housekeeping *housekeeping)
{
    int64_t repaired = 0;
    int r = members_reconcile(housekeeping->pipeline, housekeeping->session, &repaired);

    if (repaired > 0)
        log_write(LOG_WARN, "app", "%" PRId64 " members in Redis' lists differed from Postgres",
                  repaired);
    return r;
}

static int versions_maintain(struct housekeeping *housekeeping)
{
    return versions_renew(housekeeping->settings, housekeeping->session, housekeeping->pipeline);
}

static int outbox_begin(struct housekeeping *housekeeping)
{
    CLEANUP_RESULT struct result *result = NULL;

    return session_call(housekeeping->session, &OUTBOX_START, NULL, &result);
}

// Turns quiet hot channels back into normal ones, one per transaction; without an old snapshot, all
// hot channels.
static int channels_calm(struct housekeeping *housekeeping)
{
    char last[EVENT_ID_SIZE] = "";
    int r;

    do {
        CLEANUP_RESULT struct result *result = NULL;
        struct params params = {0};
        params_text(&params, last);
        params_int(&params, housekeeping->measures.heat->snapshot_s > 0 ? HOT_QUIET_US : 0);
        r = session_call(housekeeping->session, &CALM, &params, &result);
        snprintf(last, sizeof last, "%s", r < 0 ? "" : result_text(result, 0, 0));
    } while (last[0] != '\0' && !is_stopping(housekeeping));
    return r;
}

static int postgres_measure(struct housekeeping *housekeeping)
{
    return measures_take(&housekeeping->measures, housekeeping->session);
}

static void pair_log(void *arg, const struct folding_pair *pair)
{
    (void)arg;
    if (pair->is_new)
        log_write(LOG_WARN, "app", "%s %s and %s have names that look the same", pair->table,
                  pair->id, pair->like_id);
}

static int names_fold(struct housekeeping *housekeeping)
{
    return folding_step(&housekeeping->folding, housekeeping->session, pair_log, NULL);
}

static int files_remove(struct housekeeping *housekeeping)
{
    int r = 0;

    do
        r = housekeeping->storage
                ? file_sweep(housekeeping->settings, housekeeping->session, housekeeping->storage)
                : 0;
    while (r > 0 && !is_stopping(housekeeping));
    return r;
}

// A periodic task.
struct task {
    const char *name;
    int (*run)(struct housekeeping *housekeeping);
    int64_t interval_s;
    int64_t due_ms;
    bool is_upkeep; // returns an outcome of upkeep.h
};

static void task_run(struct housekeeping *housekeeping, struct task *task)
{
    int r = task->run(housekeeping);
    int retry_s = r == -ERROR_BUSY ? BUSY_S : RETRY_S;
    int64_t next_s = r < 0 ? retry_s : task->interval_s;

    if (task->is_upkeep && r == UPKEEP_UNFINISHED)
        next_s = 0;
    else if (task->is_upkeep && r == UPKEEP_ELSEWHERE)
        next_s = ELSEWHERE_S;
    task->due_ms = clock_monotonic_ms() + 1000 * next_s;
    if (r >= 0 || is_stopping(housekeeping))
        return;
    metric_add(METRIC_HOUSEKEEPING_FAILED, 1);
    log_write(LOG_WARN, "app", "%s failed (%s), next try in %d s", task->name, error_code(r),
              retry_s);
}

// Runs the tasks that are due. Returns when the next one is.
static int64_t tasks_run(struct housekeeping *housekeeping, struct task *tasks, size_t count)
{
    int64_t next_ms = INT64_MAX;

    for (size_t i = 0; i < count; i++) {
        struct task *task = &tasks[i];
        if (clock_monotonic_ms() >= task->due_ms)
            task_run(housekeeping, task);
        next_ms = task->due_ms < next_ms ? task->due_ms : next_ms;
    }
    return next_ms;
}

static void *housekeeping_run(void *arg)
{
    struct housekeeping *housekeeping = CAST(housekeeping, arg);
    const struct settings *settings = housekeeping->settings;
    struct task tasks[] = {
        {"measuring the outbox", postgres_measure, MEASURES_INTERVAL_S, 0, false},
        {"moving the start of the outbox", outbox_begin, CALM_INTERVAL_S, 0, false},
        {"calming channels", channels_calm, CALM_INTERVAL_S, 0, false},
        {"making partitions", partitions_make, PARTITIONS_INTERVAL_S, 0, false},
        {"folding names", names_fold, FOLDING_INTERVAL_S, 0, false},
        {"looking for versions", versions_maintain, versions_interval_s(settings), 0, false},
        {"removing files", files_remove, settings->files_sweep_s, 0, false},
        {"deleting old rows", rows_delete, INTERVAL_S, 0, true},
        {"dropping old months", months_drop, MONTHS_INTERVAL_S, 0, true},
        {"moving strategies", strategies_move, settings->auto_interval_s, 0, false},
        {"comparing members", members_check, settings->members_check_s,
         clock_monotonic_ms() + 1000 * settings->members_check_s, false},
    };
    int64_t next_ms;

    do {
        next_ms = tasks_run(housekeeping, tasks, sizeof tasks / sizeof tasks[0]);
        log_flush();
    } while (pause_until(housekeeping, next_ms));
    return NULL;
}

static int housekeeping_upkeep_make(struct housekeeping *housekeeping)
{
    const struct upkeep_options options = {
        .session = housekeeping->session,
        .retention_days = housekeeping->settings->retention_days,
        .key_days = housekeeping->settings->idempotency_days,
        .wait = pause_until,
        .arg = housekeeping,
    };

    return upkeep_new(&options, &housekeeping->upkeep);
}

int housekeeping_start(const struct settings *settings, struct heat *heat,
                       const struct storage *storage, struct housekeeping **ret_housekeeping)
{
    struct housekeeping *housekeeping = TAGGED_NEW(housekeeping);

    if (!housekeeping)
        return -ERROR_MEMORY;
    housekeeping->settings = settings;
    housekeeping->storage = storage;
    housekeeping->measures.heat = heat;
    pthread_mutex_init(&housekeeping->lock, NULL);
    pthread_cond_init(&housekeeping->stop, NULL);
    const struct cache_options cache_options = parts_cache_options(settings);
    int r = session_new(settings->database_url, STATEMENT_TIMEOUT_MS, &housekeeping->session);
    if (r >= 0)
        r = pipeline_new(&cache_options, &housekeeping->pipeline);
    if (r >= 0)
        r = housekeeping_upkeep_make(housekeeping);
    if (r >= 0 && pthread_create(&housekeeping->thread, NULL, housekeeping_run, housekeeping) != 0)
        r = -ERROR_MEMORY;
    if (r < 0) {
        upkeep_free(housekeeping->upkeep);
        session_free(housekeeping->session);
        pipeline_free(housekeeping->pipeline);
        TAGGED_FREE(housekeeping);
        return r;
    }
    *ret_housekeeping = housekeeping;
    return 0;
}

void housekeeping_stop(struct housekeeping *housekeeping)
{
    if (!housekeeping)
        return;
    pthread_mutex_lock(&housekeeping->lock);
    housekeeping->stopping = true;
    pthread_cond_signal(&housekeeping->stop);
    pthread_mutex_unlock(&housekeeping->lock);
    session_stop(housekeeping->session);
    pthread_join(housekeeping->thread, NULL);
    upkeep_free(housekeeping->upkeep);
    session_free(housekeeping->session);
    pipeline_free(housekeeping->pipeline);
    pthread_cond_destroy(&housekeeping->stop);
    pthread_mutex_destroy(&housekeeping->lock);
    TAGGED_FREE(housekeeping);
}
