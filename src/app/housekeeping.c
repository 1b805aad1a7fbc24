// SPDX-License-Identifier: Apache-2.0
#include "housekeeping.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/wait.h"
#include "parts.h"
#include "store/session.h"
#include "unread/members.h"
#include "versions.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

enum {
    INTERVAL_S = 3600,
    PARTITIONS_INTERVAL_S = 60, // Postgres' clock may leap, as after a long pause of its machine
    RETRY_S = 10,
    BUSY_S = 60,
    STATEMENT_TIMEOUT_MS = 600 * 1000,
    MOVES_MAX = 1000
};

static const struct statement HOUSEKEEPING = {"housekeeping",
                                              "SELECT housekeeping($1::integer, $2::integer)"};
static const struct statement PARTITIONS = {"partitions", "SELECT message_partitions_make()"};
static const struct statement STRATEGIES = {"strategies_auto",
                                            "SELECT strategies_auto($1, $2, $3)"};

struct housekeeping {
    const struct settings *settings;
    struct session *session;
    struct pipeline *pipeline;
    pthread_t thread;
    pthread_mutex_t lock; // guards stopping
    pthread_cond_t stop;
    bool stopping;
};

static int tables_keep(struct housekeeping *housekeeping)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};

    params_int(&params, housekeeping->settings->retention_days);
    params_int(&params, housekeeping->settings->idempotency_days);
    return session_call(housekeeping->session, &HOUSEKEEPING, &params, &result);
}

static int partitions_make(struct housekeeping *housekeeping)
{
    CLEANUP_RESULT struct result *result = NULL;

    return session_call(housekeeping->session, &PARTITIONS, NULL, &result);
}

// Channels of auto that have outgrown what they use. Their outbox row is found by the relays.
static int strategies_move(struct housekeeping *housekeeping)
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
    params_int(&params, MOVES_MAX);
    return session_call(housekeeping->session, &STRATEGIES, &params, &result);
}

static int members_check(struct housekeeping *housekeeping)
{
    int64_t repaired = 0;
    int r = members_reconcile(housekeeping->pipeline, housekeeping->session, &repaired);

    if (repaired > 0)
        log_write(LOG_WARN, "app", "%" PRId64 " members in Redis' lists were not those of Postgres",
                  repaired);
    return r;
}

static int versions_look(struct housekeeping *housekeeping)
{
    return versions_keep(housekeeping->settings, housekeeping->session, housekeeping->pipeline);
}

// What is done every so often.
struct chore {
    const char *name;
    int (*run)(struct housekeeping *housekeeping);
    int64_t interval_s;
    int64_t due_ms;
};

static bool is_stopping(struct housekeeping *housekeeping)
{
    pthread_mutex_lock(&housekeeping->lock);
    bool stopping = housekeeping->stopping;
    pthread_mutex_unlock(&housekeeping->lock);
    return stopping;
}

static void chore_run(struct housekeeping *housekeeping, struct chore *chore)
{
    int r = chore->run(housekeeping);
    int retry_s = r == -ERROR_BUSY ? BUSY_S : RETRY_S;

    chore->due_ms = clock_monotonic_ms() + 1000 * (r < 0 ? retry_s : chore->interval_s);
    if (r >= 0 || is_stopping(housekeeping))
        return;
    metric_add(METRIC_HOUSEKEEPING_FAILED, 1);
    log_write(LOG_WARN, "app", "%s failed (%s), next try in %d s", chore->name, error_code(r),
              retry_s);
}

// Runs what is due; returns when the next is.
static int64_t chores_run(struct housekeeping *housekeeping, struct chore *chores, size_t count)
{
    int64_t next_ms = INT64_MAX;

    for (size_t i = 0; i < count; i++) {
        struct chore *chore = &chores[i];
        if (clock_monotonic_ms() >= chore->due_ms)
            chore_run(housekeeping, chore);
        next_ms = chore->due_ms < next_ms ? chore->due_ms : next_ms;
    }
    return next_ms;
}

// Waits, or until it is to stop; false then.
static bool pause_until(struct housekeeping *housekeeping, int64_t until_ms)
{
    pthread_mutex_lock(&housekeeping->lock);
    while (!housekeeping->stopping &&
           wait_until(&housekeeping->stop, &housekeeping->lock, until_ms))
        ;
    bool stopping = housekeeping->stopping;
    pthread_mutex_unlock(&housekeeping->lock);
    return !stopping;
}

static void *housekeeping_run(void *arg)
{
    struct housekeeping *housekeeping = arg;
    const struct settings *settings = housekeeping->settings;
    struct chore chores[] = {
        {"making partitions", partitions_make, PARTITIONS_INTERVAL_S, 0},
        {"looking for versions", versions_look, versions_interval_s(settings), 0},
        {"housekeeping", tables_keep, INTERVAL_S, 0},
        {"moving strategies", strategies_move, settings->auto_interval_s, 0},
        {"comparing members", members_check, settings->members_check_s,
         clock_monotonic_ms() + 1000 * settings->members_check_s},
    };
    int64_t next_ms;

    do {
        next_ms = chores_run(housekeeping, chores, sizeof chores / sizeof chores[0]);
        log_flush();
    } while (pause_until(housekeeping, next_ms));
    return NULL;
}

int housekeeping_start(const struct settings *settings, struct housekeeping **ret_housekeeping)
{
    struct housekeeping *housekeeping = calloc(1, sizeof *housekeeping);

    if (!housekeeping)
        return -ERROR_MEMORY;
    housekeeping->settings = settings;
    pthread_mutex_init(&housekeeping->lock, NULL);
    pthread_cond_init(&housekeeping->stop, NULL);
    const struct cache_options cache_options = parts_cache_options(settings);
    int r = session_new(settings->database_url, STATEMENT_TIMEOUT_MS, &housekeeping->session);
    if (r >= 0)
        r = pipeline_new(&cache_options, &housekeeping->pipeline);
    if (r >= 0 && pthread_create(&housekeeping->thread, NULL, housekeeping_run, housekeeping) != 0)
        r = -ERROR_MEMORY;
    if (r < 0) {
        session_free(housekeeping->session);
        pipeline_free(housekeeping->pipeline);
        free(housekeeping);
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
    session_stop(housekeeping->session); // its statements may take long
    pthread_join(housekeeping->thread, NULL);
    session_free(housekeeping->session);
    pipeline_free(housekeeping->pipeline);
    pthread_cond_destroy(&housekeeping->stop);
    pthread_mutex_destroy(&housekeeping->lock);
    free(housekeeping);
}
