// SPDX-License-Identifier: Apache-2.0
// A loop's connections to Postgres: queues statements, picks a lane for each, and delivers replies.
#include "store/store.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/error.h"
#include "base/memory.h"

#include "eras_internal.h"
#include "lane_internal.h"
#include "turns_internal.h"

enum { READS_AHEAD_MAX = 1 };

// Argument of a connection's first call.
struct store_greeting {
    uint32_t tag;
    struct store *store;
    enum store_lane lane;
};

struct store {
    uint32_t tag;
    struct loop *loop;
    struct store_options options;
    struct postgres_keywords keywords[STORE_LANE_MAX];
    struct lane *lanes[STORE_LANE_MAX];
    struct store_greeting greetings[STORE_LANE_MAX];
    struct eras eras;
    struct turns *turns;
    struct loop_timer *patience;
    int64_t flushed_us;  // start of the turn that flushed last
    struct list refused; // calls to answer at the end of a turn
    struct list spare;   // calls for reuse
};

static const char *const lane_names[STORE_LANE_MAX] = {
    [STORE_POST] = "post",         [STORE_MARK] = "mark",           [STORE_WRITE] = "write",
    [STORE_MANY] = "many",         [STORE_ASIDE] = "aside",         [STORE_READ] = "read",
    [STORE_READ_TOO] = "read_too", [STORE_LIST] = "list",           [STORE_SYNC] = "sync",
    [STORE_BULK] = "bulk",         [STORE_BULK_BACK] = "bulk_back",
};

bool store_url_is_valid(const char *database_url)
{
    PQconninfoOption *parsed = PQconninfoParse(database_url, NULL);
    PQconninfoFree(parsed);
    return parsed != NULL;
}

static struct lane_call *store_new_call(struct store *store)
{
    if (list_is_empty(&store->spare))
        return memory_must_new(sizeof(struct lane_call));
    struct lane_call *call = LIST_ITEM(store->spare.next, struct lane_call, link);
    list_remove(&call->link);
    return call;
}

struct result *store_take(const struct store_outcome *outcome)
{
    *outcome->taken = true;
    return (struct result *)(uintptr_t)outcome->result;
}

static void store_answer(struct store *store, struct lane_call *call)
{
    bool taken = false;
    struct store_outcome outcome = {
        .r = call->r,
        .unknown = call->unknown,
        .locked = call->locked,
        .result = call->r == 0 ? postgres_result(call->result) : NULL,
        .taken = &taken,
    };
    call->fn(call->arg, &outcome);
    if (!taken)
        PQclear(call->result);
    params_done(&call->params);
    list_append(&store->spare, &call->link);
}

static void store_refuse(struct store *store, struct lane_call *call)
{
    list_append(&store->refused, &call->link);
    loop_again(store->loop);
}

// For calls made from a callback while the store is being freed.
static void store_refuse_closed(struct store *store, struct lane_call *call)
{
    call->r = -ERROR_UNAVAILABLE;
    store_refuse(store, call);
}

static void store_answer_refused(struct store *store)
{
    struct list taken;
    list_init(&taken);
    list_append_all(&taken, &store->refused);
    while (!list_is_empty(&taken)) {
        struct lane_call *call = LIST_ITEM(taken.next, struct lane_call, link);
        list_remove(&call->link);
        store_answer(store, call);
    }
}

static void store_idle(void *arg)
{
    struct store *store = CAST(store, arg);
    store->flushed_us = loop_now_us(store->loop);
    for (int i = 0; i < STORE_LANE_MAX; i++)
        lane_read_pulled(store->lanes[i]);
    for (int i = 0; i < STORE_LANE_MAX; i++)
        lane_flush(store->lanes[i]);
    store_answer_refused(store);
}

static void store_end_patience(void *arg)
{
    struct store *store = CAST(store, arg);
    for (int i = 0; i < STORE_LANE_MAX; i++)
        lane_end_patience(store->lanes[i]);
}

// If the era is unknown, no transaction id holds. If Postgres cannot run the statement, this
// version's functions are missing, and the connection is useless.
static void store_greeted(void *arg, const struct store_outcome *outcome)
{
    const struct store_greeting *greeting = CAST(store_greeting, arg);
    struct store *store = greeting->store;
    if (outcome->r == 0)
        eras_take(&store->eras, outcome->result);
    else
        eras_done(&store->eras);
    if (!store->lanes[greeting->lane])
        return;
    if (outcome->r == -ERROR_INTERNAL)
        lane_reject(store->lanes[greeting->lane]);
    else
        lane_greeted(store->lanes[greeting->lane]);
}

static struct lane_call *store_greet(struct store *store, const struct lane *lane)
{
    int i = 0;
    while (i < STORE_LANE_MAX && store->lanes[i] != lane)
        i++;
    ASSERT(i < STORE_LANE_MAX);
    store->greetings[i] = (struct store_greeting){
        .tag = TAG(store_greeting), .store = store, .lane = (enum store_lane)i};
    struct lane_call *call = store_new_call(store);
    *call = (struct lane_call){
        .statement = &eras_statement, .fn = store_greeted, .arg = &store->greetings[i]};
    list_init(&call->link);
    return call;
}

static int store_open_lanes(struct store *store)
{
    struct lane_options options = {
        .store = store,
        .loop = store->loop,
        .settings = &store->options,
        .answer = store_answer,
        .refuse = store_refuse,
        .greet = store_greet,
    };
    for (int i = 0; i < STORE_LANE_MAX; i++) {
        options.name = lane_names[i];
        options.keywords = &store->keywords[i];
        int r = lane_new(&options, &store->lanes[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

static int store_make_keywords(struct store *store)
{
    for (int i = 0; i < STORE_LANE_MAX; i++) {
        const struct postgres_settings settings = {
            .database_url = store->options.database_url,
            .connect_timeout_ms = store->options.connect_timeout_ms,
            .statement_timeout_ms = store->options.statement_timeout_ms,
            .lock_wait_ms = i <= STORE_ASIDE ? store->options.lock_wait_ms : 0,
            .relaxed = i == STORE_READ || i == STORE_READ_TOO,
            .nested = i == STORE_POST || i == STORE_MARK || i == STORE_ASIDE || i == STORE_SYNC,
            .merged = i == STORE_BULK || i == STORE_BULK_BACK,
        };
        int r = postgres_keywords_init(&settings, &store->keywords[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

static int store_start(struct store *store)
{
    int r = store_make_keywords(store);
    if (r < 0)
        return r;
    r = loop_timer_new(store->loop, store_end_patience, store, &store->patience);
    if (r < 0)
        return r;
    loop_timer_set(store->patience, store->options.connect_timeout_ms);
    r = turns_new(store->loop, store, store_call, store->options.statement_timeout_ms,
                  &store->turns);
    if (r < 0)
        return r;
    r = store_open_lanes(store);
    if (r < 0)
        return r;
    return loop_idle_add(store->loop, store_idle, store);
}

int store_new(struct loop *loop, const struct store_options *options, struct store **ret_store)
{
    struct store *store = TAGGED_NEW(store);
    if (!store)
        return -ERROR_MEMORY;
    store->loop = loop;
    store->flushed_us = loop_now_us(loop); // before its first turn, a loop waits anyway
    store->options = *options;
    list_init(&store->refused);
    list_init(&store->spare);
    int r = store_start(store);
    if (r < 0) {
        store_free(store);
        return r;
    }
    *ret_store = store;
    return 0;
}

static void free_calls(struct list *calls)
{
    LIST_FOREACH(link, calls)
    free(LIST_ITEM(link, struct lane_call, link));
}

void store_free(struct store *store)
{
    if (!store)
        return;
    turns_close(store->turns);
    for (int i = 0; i < STORE_LANE_MAX; i++)
        lane_free(TAKE(store->lanes[i]));
    while (!list_is_empty(&store->refused))
        store_answer_refused(store);
    turns_free(store->turns);
    loop_timer_free(store->patience);
    free_calls(&store->spare);
    eras_done(&store->eras);
    TAGGED_FREE(store);
}

static struct lane *store_lane(const struct store *store, enum store_lane lane)
{
    struct lane *one = store->lanes[lane];
    struct lane *other = store->lanes[STORE_READ_TOO];

    if (lane != STORE_READ || !one || !other || !lane_is_up(other))
        return one;
    // Waking a second server process costs more than waiting for one short read.
    return !lane_is_up(one) || lane_count(other) + READS_AHEAD_MAX < lane_count(one) ? other : one;
}

void store_call(struct store *store, enum store_lane lane, const struct statement *statement,
                struct params *params, store_fn *fn, void *arg)
{
    ASSERT(lane < STORE_LANE_MAX && statement && fn);
    struct lane_call *call = store_new_call(store);
    *call = (struct lane_call){.statement = statement, .fn = fn, .arg = arg};
    list_init(&call->link);
    if (params) {
        call->params = *params;
        *params = (struct params){0};
    }
    struct lane *chosen = store_lane(store, lane);
    if (chosen)
        lane_call(chosen, call);
    else
        store_refuse_closed(store, call);
    // A call made after this turn's flush, from another idle callback, gets a turn without waiting.
    if (store->flushed_us == loop_now_us(store->loop))
        loop_again(store->loop);
}

void store_change(struct store *store, const char *key, const struct statement *statement,
                  struct params *params, store_fn *fn, void *arg)
{
    turns_change(store->turns, STORE_WRITE, key, statement, params, fn, arg);
}

void store_change_many(struct store *store, const char *key, const struct statement *statement,
                       struct params *params, store_fn *fn, void *arg)
{
    turns_change(store->turns, STORE_MANY, key, statement, params, fn, arg);
}

void store_flush(struct store *store, enum store_lane lane)
{
    if (store->lanes[lane])
        lane_flush(store->lanes[lane]);
}

void store_pull(struct store *store, enum store_lane lane)
{
    ASSERT(lane < STORE_LANE_MAX);
    lane_pull(store->lanes[lane]);
}

bool store_is_up(const struct store *store, enum store_lane lane)
{
    return lane_is_up(store->lanes[lane]);
}

struct era store_era(const struct store *store)
{
    return eras_last(&store->eras);
}

bool store_era_holds(const struct store *store, int64_t number, int64_t xid)
{
    return eras_hold(&store->eras, number, xid);
}

void store_on_up(struct store *store, enum store_lane lane, loop_fn *fn, void *arg)
{
    ASSERT(lane < STORE_LANE_MAX && fn);
    lane_on_up(store->lanes[lane], fn, arg);
}
