// SPDX-License-Identifier: Apache-2.0
// One process of tidings serve: creates the loops, relay, workers and threads, runs them, and stops
// them in order.
#include "app/instance.h"

#include "auditor.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/service_url.h"
#include "events_api/events_api.h"
#include "fanout/load.h"
#include "fanout/worker.h"
#include "files/storage.h"
#include "housekeeping.h"
#include "notify/dispatcher.h"
#include "parts.h"
#include "service.h"
#include "unread/view.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    LEFTOVER_AGE_MS = 3000,
    LEFTOVER_POLL_MS = 1000,
    RELAY_QUEUE_MAX = 100000,
    STOP_POLL_MS = 10,
    PUSHES_DRAIN_MS = 1000, // pushes without a response by then are sent again by another instance
    MAPPED_BYTES_MIN = 256 << 10
};

struct instance {
    uint32_t tag;
    const struct settings *settings;
    struct secrets secrets;
    struct storage *storage; // of files; NULL: none
    struct relay *relay;
    struct events_api *events_api;
    struct notify *notify;
    struct dispatcher *dispatcher;
    struct workers *workers;
    struct heat heat; // housekeeping's
    struct housekeeping *housekeeping;
    struct auditor *auditor;
    struct readiness *readiness;
    struct service **services;
    struct sessions **sessions; // one per service
    int count;
    int64_t drain_until_ms; // set when stopping
};

static int loops_wanted(const struct settings *settings)
{
    long half = sysconf(_SC_NPROCESSORS_ONLN) / 2;

    if (settings->loops > 0)
        return (int)settings->loops;
    return half < 1 ? 1 : (int)half;
}

static int events_api_make(struct instance *instance)
{
    const struct settings *settings = instance->settings;
    const struct events_api_options options = {
        .settings = settings->events_api,
        .database_url = settings->database_url,
        .secrets = &instance->secrets,
        .statement_timeout_ms = settings->statement_timeout_ms,
        .app_socket_max = settings->app_socket_queue_max,
        .app_socket_keep_s = settings->app_socket_keep_s,
        .app_socket_wait_ms = settings->app_socket_ack_ms,
    };

    return events_api_start(&options, &instance->events_api);
}

static int notify_make(struct instance *instance)
{
    const struct settings *settings = instance->settings;
    const struct notify_options options = {
        .settings = settings->notify,
        .private_allowed = settings->events_api_private,
    };

    return notify_start(&options, &instance->notify);
}

static int dispatcher_make(struct instance *instance)
{
    const struct settings *settings = instance->settings;
    const struct dispatcher_options options = {
        .settings = settings->notify,
        .database_url = settings->database_url,
        .secrets = &instance->secrets,
        .notify = instance->notify,
        .cache = parts_cache_options(settings),
        .statement_timeout_ms = settings->statement_timeout_ms,
    };

    return dispatcher_start(&options, &instance->dispatcher);
}

static int events_store(void *arg, struct session *session, struct event *const *events,
                        size_t count)
{
    struct instance *instance = CAST(instance, arg);

    int r = events_api_store(instance->events_api, session, events, count);
    int pushed = dispatcher_store(instance->dispatcher, session, events, count);

    return r < 0 ? r : pushed;
}

static int fanout_make(struct instance *instance)
{
    const struct settings *settings = instance->settings;
    const struct relay_options relay_options = {
        .database_url = settings->database_url,
        .statement_timeout_ms = settings->statement_timeout_ms,
        .leftover_age_ms = LEFTOVER_AGE_MS,
        .leftover_poll_ms = LEFTOVER_POLL_MS,
        .queue_max = RELAY_QUEUE_MAX,
    };
    struct log_options log_options = {
        .brokers = settings->kafka_brokers,
        .topic = settings->kafka_topic,
        .group = settings->kafka_group,
        .workers = (int)settings->workers,
        .queue_max = (int)settings->log_queue_max,
        .queue_bytes = settings->log_queue_bytes,
        .read_bytes = settings->log_read_bytes,
        .kafka_queue_bytes = settings->kafka_queue_bytes,
        .kafka_fetch_bytes = settings->kafka_fetch_bytes,
    };
    const struct workers_options workers_options = {
        .cache = parts_cache_options(settings),
        .database_url = settings->database_url,
        .statement_timeout_ms = settings->statement_timeout_ms,
        .count = (int)settings->workers,
        .thread_read_s = settings->thread_read_days * 24 * 3600,
        .store = events_store,
        .arg = instance,
    };

    int r = relay_new(&relay_options, &log_options, load_event, &instance->relay);
    if (r < 0)
        return r;
    r = workers_start(relay_log(instance->relay), &workers_options, &instance->workers);
    if (r < 0)
        return r;
    return relay_start(instance->relay);
}

static int services_make(struct instance *instance)
{
    int wanted = loops_wanted(instance->settings);

    int r = readiness_new(wanted, &instance->readiness);
    if (r < 0)
        return r;
    instance->services = calloc((size_t)wanted, sizeof(struct service *));
    instance->sessions = calloc((size_t)wanted, sizeof(struct sessions *));
    if (!instance->services || !instance->sessions)
        return -ERROR_MEMORY;
    for (; instance->count < wanted; instance->count++) {
        r = service_new(instance->settings, &instance->secrets, instance->storage, &instance->heat,
                        instance->notify, instance->relay, instance->readiness, instance->count,
                        &instance->services[instance->count]);
        if (r < 0)
            return r;
        instance->sessions[instance->count] = service_sessions(instance->services[instance->count]);
    }
    for (int i = 0; i < instance->count; i++)
        sessions_set_all(instance->sessions[i], instance->sessions, instance->count);
    return 0;
}

static int instance_start(struct instance *instance)
{
    parts_secrets(instance->settings, &instance->secrets);
    int r = parts_check_database(instance->settings);
    if (r < 0)
        return r;
    if (instance->settings->files_url[0] != '\0')
        r = storage_new(instance->settings->files_url, &instance->storage);
    if (r < 0)
        return r;
    r = events_api_make(instance);
    if (r < 0)
        return r;
    r = notify_make(instance);
    if (r < 0)
        return r;
    r = dispatcher_make(instance);
    if (r < 0)
        return r;
    r = fanout_make(instance);
    if (r < 0)
        return r;
    r = services_make(instance);
    if (r < 0)
        return r;
    r = housekeeping_start(instance->settings, &instance->heat, instance->storage,
                           &instance->housekeeping);
    if (r >= 0)
        r = auditor_start(instance->settings, &instance->auditor);
    for (int i = 0; i < instance->count && r >= 0; i++)
        r = service_start(instance->services[i]);
    return r;
}

static bool any_busy(const struct instance *instance)
{
    for (int i = 0; i < instance->count; i++)
        if (service_is_busy(instance->services[i]))
            return true;
    return false;
}

// The rest of drain_ms, which all work in progress shares.
static int64_t drain_left_ms(const struct instance *instance)
{
    int64_t left_ms = instance->drain_until_ms - clock_monotonic_ms();

    return left_ms > 0 ? left_ms : 0;
}

// Accepts nothing new, and lets work in progress end.
static void services_drain(struct instance *instance)
{
    const struct timespec pause = {.tv_nsec = STOP_POLL_MS * 1000000L};

    instance->drain_until_ms = clock_monotonic_ms() + instance->settings->drain_ms;
    for (int i = 0; i < instance->count; i++)
        service_drain(instance->services[i]);
    while (any_busy(instance) && drain_left_ms(instance) > 0)
        nanosleep(&pause, NULL);
}

// Stops the loops first, so that nothing more is committed; then the relay and the log, so that
// committed events are published, or left in the outbox for other instances.
static void instance_stop(struct instance *instance)
{
    int64_t left_ms = drain_left_ms(instance);

    dispatcher_stop(instance->dispatcher, left_ms < PUSHES_DRAIN_MS ? left_ms : PUSHES_DRAIN_MS);
    notify_stop(instance->notify); // the loops still handle its last outcomes
    for (int i = 0; i < instance->count; i++)
        service_stop(instance->services[i]);
    for (int i = 0; i < instance->count; i++)
        service_free(instance->services[i]);
    notify_free(instance->notify);
    free(instance->services);
    free(instance->sessions);
    readiness_free(instance->readiness);
    housekeeping_stop(instance->housekeeping);
    storage_free(instance->storage);
    auditor_stop(instance->auditor);
    if (instance->relay) {
        relay_stop(instance->relay, drain_left_ms(instance));
        log_stop(relay_log(instance->relay), drain_left_ms(instance));
        workers_stop(instance->workers, drain_left_ms(instance));
        relay_free(instance->relay);
    }
    dispatcher_free(instance->dispatcher);
    events_api_stop(instance->events_api, drain_left_ms(instance));
}

static void signals_block(sigset_t *ret_signals)
{
    sigemptyset(ret_signals);
    sigaddset(ret_signals, SIGTERM);
    sigaddset(ret_signals, SIGINT);
    sigaddset(ret_signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, ret_signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

// Raises the limit of descriptors to the permitted maximum: each client takes one, and nothing here
// depends on low numbers.
static long long descriptors_allow(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 0 : (long long)limit.rlim_cur;
}

// Returns large buffers to the system as soon as they are freed. By default, glibc raises its
// threshold for that to the largest buffer ever freed (up to 32 MiB), and keeps a burst's memory
// for good.
static void memory_give_back(void)
{
    mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
}

int instance_run(const struct settings *settings)
{
    struct instance instance = {.tag = TAG(instance), .settings = settings};
    sigset_t signals;
    int number = 0;

    signals_block(&signals);
    memory_give_back();
    long long descriptors = descriptors_allow();
    service_url_set(settings->public_url, settings->listen);
    unread_cap_set(settings->unread_max);
    unread_display_max_set(settings->unread_display_max);
    int r = instance_start(&instance);
    if (r >= 0) {
        log_write(LOG_INFO, "app", "serving on %s with %d loops and at most %lld open files",
                  settings->listen, instance.count, descriptors);
        log_flush();
        sigwait(&signals, &number);
        log_write(LOG_INFO, "app", "stopping on signal %d", number);
        log_flush();
        services_drain(&instance);
    } else {
        log_write(LOG_ERROR, "app", "cannot start: %s",
                  r == -ERROR_MEMORY ? "out of memory, threads or descriptors" : error_code(r));
    }
    instance_stop(&instance);
    log_write(LOG_INFO, "app", "stopped");
    log_flush();
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
