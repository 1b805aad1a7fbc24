// SPDX-License-Identifier: Apache-2.0
// A thread that audits the counts in Redis: compares a sample with Postgres, corrects differences,
// and starts a rebuild when Redis is empty.
#include "auditor.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/wait.h"
#include "events/event.h"
#include "parts.h"
#include "unread/audit.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The lock of a rebuild is renewed with each page, so it expires if its holder dies.
enum { POLL_MS = 1000, STATEMENT_TIMEOUT_MS = 60000, USERS_MAX = 100000 };
static const char BUILT_KEY[] = "unread-built", LOCK_KEY[] = "unread-building", LOCK_S[] = "120";
static const char USER_TOPICS[] = "user-events:{";

struct auditor {
    uint32_t tag;
    const struct settings *settings;
    struct session *session;
    struct pipeline *pipeline;
    char name[ID_SIZE];
    int64_t rebuilt_since_ms; // when the rebuild began
    int64_t rebuilt_before;   // pairs done so far
    int64_t audit_at_ms;
    pthread_t thread;
    pthread_mutex_t lock; // protects stopping
    pthread_cond_t stop;
    bool stopping;
};

// Users connected anywhere: their topics have subscribers.
struct users {
    uint32_t tag;
    char (*ids)[EVENT_ID_SIZE];
    size_t count;
};

// False: time to stop.
static bool pause_until(struct auditor *auditor, int64_t until_ms)
{
    pthread_mutex_lock(&auditor->lock);
    while (!auditor->stopping && wait_until(&auditor->stop, &auditor->lock, until_ms))
        ;
    bool stopping = auditor->stopping;
    pthread_mutex_unlock(&auditor->lock);
    return !stopping;
}

static void on_user_topics(void *arg, int r, const struct cache_value *value)
{
    struct users *users = CAST(users, arg);
    size_t count = r < 0 ? 0 : cache_value_count(value);

    if (count > USERS_MAX)
        count = USERS_MAX;
    users->ids = count > 0 ? memory_must_resize(NULL, count, sizeof *users->ids) : NULL;
    for (size_t i = 0; i < count; i++) {
        const char *topic = cache_value_text(cache_value_at(value, i));
        size_t prefix = sizeof USER_TOPICS - 1;
        if (strncmp(topic, USER_TOPICS, prefix) != 0)
            continue;
        size_t length = strcspn(topic + prefix, "}");
        if (length < EVENT_ID_SIZE)
            snprintf(users->ids[users->count++], EVENT_ID_SIZE, "%.*s", (int)length,
                     topic + prefix);
    }
}

static int users_read(struct auditor *auditor, struct users *ret_users)
{
    pipeline_add(auditor->pipeline, 3,
                 (const char *[]){"PUBSUB", "SHARDCHANNELS", "user-events:{*"}, NULL);
    return pipeline_run(auditor->pipeline, on_user_topics, ret_users);
}

// Limits the rate, and renews the lock.
static bool rebuild_progress(void *arg, const struct audit_totals *totals)
{
    struct auditor *auditor = CAST(auditor, arg);
    int64_t done = auditor->rebuilt_before + totals->pairs;

    pipeline_add(auditor->pipeline, 5,
                 (const char *[]){"SET", LOCK_KEY, auditor->name, "EX", LOCK_S}, NULL);
    if (pipeline_run(auditor->pipeline, NULL, NULL) < 0)
        return false;
    return pause_until(auditor, auditor->rebuilt_since_ms +
                                    1000 * done / auditor->settings->rebuild_pairs_per_s);
}

// Rebuilds one user's pairs; "": all users'.
static int rebuild_of(struct auditor *auditor, const char *user_id)
{
    const struct audit_options options = {.session = auditor->session,
                                          .pipeline = auditor->pipeline,
                                          .mode = AUDIT_REBUILD,
                                          .scope = {"", "", user_id},
                                          .progress = rebuild_progress,
                                          .arg = auditor};
    struct audit_totals totals;

    int r = audit_run(&options, &totals);
    auditor->rebuilt_before += totals.pairs;
    return r;
}

// After a failure, keeps the lock in order to retry; when stopping, releases it for other
// instances.
static int rebuild_leave(struct auditor *auditor, int r)
{
    if (pause_until(auditor, 0))
        return r;
    pipeline_add(auditor->pipeline, 2, (const char *[]){"DEL", LOCK_KEY}, NULL);
    (void)!pipeline_run(auditor->pipeline, NULL, NULL); // otherwise the lock expires
    return r;
}

// Rebuilds connected users first, then everybody.
static int rebuild_run(struct auditor *auditor)
{
    struct users users = {.tag = TAG(users)};

    auditor->rebuilt_since_ms = clock_monotonic_ms();
    auditor->rebuilt_before = 0;
    int r = users_read(auditor, &users);
    for (size_t i = 0; i < users.count && r >= 0; i++)
        r = rebuild_of(auditor, users.ids[i]);
    free(users.ids);
    if (r >= 0)
        r = rebuild_of(auditor, "");
    if (r < 0)
        return rebuild_leave(auditor, r);
    log_write(LOG_INFO, "app",
              "Redis was empty: %" PRId64 " unread states restored in %" PRId64 " ms",
              auditor->rebuilt_before, clock_monotonic_ms() - auditor->rebuilt_since_ms);
    pipeline_add(auditor->pipeline, 3, (const char *[]){"SET", BUILT_KEY, auditor->name}, NULL);
    pipeline_add(auditor->pipeline, 2, (const char *[]){"DEL", LOCK_KEY}, NULL);
    return pipeline_run(auditor->pipeline, NULL, NULL);
}

static void on_built(void *arg, int r, const struct cache_value *value)
{
    bool *built = arg;

    *built = r == 0 && !cache_value_is_null(value);
}

// The holder of the lock; it is ours after our own failed rebuild, too.
struct lock_check {
    uint32_t tag;
    const char *name;
    bool is_ours;
};

static void on_lock(void *arg, int r, const struct cache_value *value)
{
    struct lock_check *check = CAST(lock_check, arg);

    check->is_ours =
        r == 0 && (cache_value_is_null(value) || strcmp(cache_value_text(value), check->name) == 0);
}

static int rebuild_if_lost(struct auditor *auditor)
{
    struct lock_check check = {.tag = TAG(lock_check), .name = auditor->name};
    bool built = false;

    pipeline_add(auditor->pipeline, 2, (const char *[]){"GET", BUILT_KEY}, NULL);
    int r = pipeline_run(auditor->pipeline, on_built, &built);
    if (r < 0 || built)
        return r;
    pipeline_add(auditor->pipeline, 7,
                 (const char *[]){"SET", LOCK_KEY, auditor->name, "NX", "GET", "EX", LOCK_S}, NULL);
    r = pipeline_run(auditor->pipeline, on_lock, &check);
    return r < 0 || !check.is_ours ? r : rebuild_run(auditor);
}

static int audit_if_due(struct auditor *auditor)
{
    const struct audit_options options = {.session = auditor->session,
                                          .pipeline = auditor->pipeline,
                                          .mode = AUDIT_REPAIR,
                                          .scope = {"", "", ""}};
    struct audit_totals totals;

    if (auditor->settings->audit_pairs == 0 || clock_monotonic_ms() < auditor->audit_at_ms)
        return 0;
    auditor->audit_at_ms = clock_monotonic_ms() + 1000 * auditor->settings->audit_interval_s;
    int r = audit_sample(&options, auditor->settings->audit_pairs, &totals);
    if (totals.drifted > 0)
        log_write(LOG_WARN, "app", "%" PRId64 " of %" PRId64 " unread counts in Redis were wrong",
                  totals.drifted, totals.known);
    return r;
}

static void *auditor_run(void *arg)
{
    struct auditor *auditor = CAST(auditor, arg);

    while (pause_until(auditor, clock_monotonic_ms() + POLL_MS)) {
        int r = rebuild_if_lost(auditor);
        if (r >= 0)
            r = audit_if_due(auditor);
        if (r < 0)
            log_write(LOG_DEBUG, "app", "cannot audit unread counts: %s", error_code(r));
        log_flush();
    }
    return NULL;
}

static void auditor_free(struct auditor *auditor)
{
    session_free(auditor->session);
    pipeline_free(auditor->pipeline);
    pthread_cond_destroy(&auditor->stop);
    pthread_mutex_destroy(&auditor->lock);
    TAGGED_FREE(auditor);
}

int auditor_start(const struct settings *settings, struct auditor **ret_auditor)
{
    struct auditor *auditor = memory_must_new(sizeof *auditor);
    auditor->tag = TAG(auditor);
    const struct cache_options cache_options = parts_cache_options(settings);

    auditor->settings = settings;
    id_make('A', auditor->name);
    pthread_mutex_init(&auditor->lock, NULL);
    pthread_cond_init(&auditor->stop, NULL);
    int r = session_new(settings->database_url, STATEMENT_TIMEOUT_MS, &auditor->session);
    if (r >= 0)
        r = pipeline_new(&cache_options, &auditor->pipeline);
    if (r >= 0 && pthread_create(&auditor->thread, NULL, auditor_run, auditor) != 0)
        r = -ERROR_MEMORY;
    if (r < 0) {
        auditor_free(auditor);
        return r;
    }
    *ret_auditor = auditor;
    return 0;
}

void auditor_stop(struct auditor *auditor)
{
    if (!auditor)
        return;
    pthread_mutex_lock(&auditor->lock);
    auditor->stopping = true;
    pthread_cond_signal(&auditor->stop);
    pthread_mutex_unlock(&auditor->lock);
    session_stop(auditor->session); // its statements may take long
    pthread_join(auditor->thread, NULL);
    auditor_free(auditor);
}
