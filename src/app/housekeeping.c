// SPDX-License-Identifier: Apache-2.0
#include "housekeeping.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/wait.h"
#include "store/session.h"

#include <pthread.h>
#include <stdlib.h>

enum { INTERVAL_MS = 3600 * 1000, RETRY_MS = 10 * 1000, STATEMENT_TIMEOUT_MS = 600 * 1000 };

static const struct statement HOUSEKEEPING = {"housekeeping",
                                              "SELECT housekeeping($1::integer, $2::integer)"};

struct housekeeping {
    const struct settings *settings;
    struct session *session;
    pthread_t thread;
    pthread_mutex_t lock; // guards stopping
    pthread_cond_t stop;
    bool stopping;
};

static int round_run(struct housekeeping *housekeeping)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};

    params_int(&params, housekeeping->settings->retention_days);
    params_int(&params, housekeeping->settings->idempotency_days);
    return session_call(housekeeping->session, &HOUSEKEEPING, &params, &result);
}

// Waits, or until it is to stop; false then.
static bool pause_for(struct housekeeping *housekeeping, int64_t pause_ms)
{
    int64_t until_ms = clock_monotonic_ms() + pause_ms;

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
    int r;

    do {
        r = round_run(housekeeping);
        if (r < 0)
            log_write(LOG_WARN, "app", "housekeeping failed (%s), next try in %d s", error_code(r),
                      RETRY_MS / 1000);
        log_flush();
    } while (pause_for(housekeeping, r < 0 ? RETRY_MS : INTERVAL_MS));
    return NULL;
}

int housekeeping_start(const struct settings *settings, struct housekeeping **ret_housekeeping)
{
    struct housekeeping *housekeeping = calloc(1, sizeof *housekeeping);

    if (housekeeping == NULL)
        return -ERROR_MEMORY;
    housekeeping->settings = settings;
    pthread_mutex_init(&housekeeping->lock, NULL);
    pthread_cond_init(&housekeeping->stop, NULL);
    int r = session_new(settings->database_url, STATEMENT_TIMEOUT_MS, &housekeeping->session);
    if (r >= 0 && pthread_create(&housekeeping->thread, NULL, housekeeping_run, housekeeping) != 0)
        r = -ERROR_MEMORY;
    if (r < 0) {
        session_free(housekeeping->session);
        free(housekeeping);
        return r;
    }
    *ret_housekeeping = housekeeping;
    return 0;
}

void housekeeping_stop(struct housekeeping *housekeeping)
{
    if (housekeeping == NULL)
        return;
    pthread_mutex_lock(&housekeeping->lock);
    housekeeping->stopping = true;
    pthread_cond_signal(&housekeeping->stop);
    pthread_mutex_unlock(&housekeeping->lock);
    pthread_join(housekeeping->thread, NULL);
    session_free(housekeeping->session);
    pthread_cond_destroy(&housekeeping->stop);
    pthread_mutex_destroy(&housekeeping->lock);
    free(housekeeping);
}
