// SPDX-License-Identifier: Apache-2.0
// The store on a loop that runs in a thread, against a private Postgres; the test asks it and
// waits.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/error.h"
#include "base/loop.h"
#include "migrated_postgres.h"
#include "postgres_group.h"
#include "store/store.h"

enum { QUEUE_MAX = 50, QUEUE_BYTES = 10000, STATEMENT_TIMEOUT_MS = 3000, PATIENCE_SECONDS = 30 };

// One call and what came of it.
struct ask {
    enum store_lane lane;
    const struct statement *statement;
    struct params params;
    int r;
    bool unknown;
    int rows;
    int order; // which answer it was
    char text[256];
};

static struct {
    struct loop *loop;
    struct store *store;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct ask *asks;
    int count;
    int answered;
    int ups; // of STORE_WRITE
    int lanes_up;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void on_up(void *count)
{
    pthread_mutex_lock(&world.lock);
    (*(int *)count)++;
    pthread_cond_broadcast(&world.changed);
    pthread_mutex_unlock(&world.lock);
}

static void *run_loop(void *arg)
{
    loop_run(world.loop);
    return arg;
}

static void open_store(const char *url)
{
    const struct store_options options = {.database_url = url,
                                          .connect_timeout_ms = 2000,
                                          .statement_timeout_ms = STATEMENT_TIMEOUT_MS,
                                          .queue_max = QUEUE_MAX,
                                          .queue_bytes = QUEUE_BYTES};
    world.ups = 0;
    world.lanes_up = 0;
    assert_int_equal(loop_new(&world.loop), 0);
    assert_int_equal(store_new(world.loop, &options, &world.store), 0);
    store_on_up(world.store, STORE_WRITE, on_up, &world.ups);
    for (int i = 0; i < STORE_LANE_MAX; i++)
        if (i != STORE_WRITE)
            store_on_up(world.store, (enum store_lane)i, on_up, &world.lanes_up);
    assert_int_equal(pthread_create(&world.thread, NULL, run_loop, NULL), 0);
}

static void close_store(void)
{
    loop_stop(world.loop);
    pthread_join(world.thread, NULL);
    store_free(world.store);
    loop_free(world.loop);
}

static int teardown(void **state)
{
    (void)state;
    close_store();
    return 0;
}

static void answer(void *arg, const struct store_outcome *outcome)
{
    struct ask *ask = arg;
    pthread_mutex_lock(&world.lock);
    ask->r = outcome->r;
    ask->unknown = outcome->unknown;
    assert_true((outcome->result != NULL) == (outcome->r == 0));
    if (outcome->result) {
        ask->rows = result_rows(outcome->result);
        snprintf(ask->text, sizeof ask->text, "%s", result_text(outcome->result, 0, 0));
    }
    ask->order = world.answered++;
    pthread_cond_broadcast(&world.changed);
    pthread_mutex_unlock(&world.lock);
}

static void call_all(void *arg)
{
    (void)arg;
    for (int i = 0; i < world.count; i++) {
        struct ask *ask = &world.asks[i];
        store_call(world.store, ask->lane, ask->statement, &ask->params, answer, ask);
        assert_int_equal(ask->params.count, 0);
    }
}

static void begin(struct ask *asks, int count)
{
    world.asks = asks;
    world.count = count;
    world.answered = 0;
    assert_int_equal(loop_post(world.loop, call_all, NULL), 0);
}

// Waits until *number is at least `least`.
static void wait_for(const int *number, int least)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_SECONDS;
    pthread_mutex_lock(&world.lock);
    int r = 0;
    while (*number < least && r == 0)
        r = pthread_cond_timedwait(&world.changed, &world.lock, &end);
    pthread_mutex_unlock(&world.lock);
    assert_int_equal(r, 0);
}

// On a busy machine connecting takes longer than a call waits for it.
static int setup(void **state)
{
    (void)state;
    open_store(postgres.url);
    wait_for(&world.ups, 1);
    wait_for(&world.lanes_up, STORE_LANE_MAX - 1);
    return 0;
}

static void ask_all(struct ask *asks, int count)
{
    begin(asks, count);
    wait_for(&world.answered, count);
}

static struct ask ask_one(const struct statement *statement)
{
    struct ask ask = {.lane = STORE_WRITE, .statement = statement};
    ask_all(&ask, 1);
    return ask;
}

// What a connection begins with needs the functions.
static int begin_migrated(void **state)
{
    int r = begin_group(state);
    return r < 0 ? r : postgres_migrate();
}
