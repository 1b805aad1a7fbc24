// SPDX-License-Identifier: Apache-2.0
// Runs the changes of one channel or user in order. Changes that find a row locked wait aside; the
// others go on.
#include "turns_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "store/aside.h"

#include "params_internal.h"

struct turns {
    uint32_t tag;
    struct loop *loop;
    struct store *store;
    turns_call_fn *call;
    struct aside *aside; // NULL once closed
    int64_t wait_max_ms;
};

struct turn {
    uint32_t tag;
    struct list link;
    struct turns *turns;
    enum store_lane lane;
    char key[ASIDE_KEY_SIZE];
    const struct statement *statement;
    struct params params;
    store_fn *fn;
    void *arg;
    int64_t deadline_ms;
};

static void turn_answer(struct turn *turn, const struct store_outcome *outcome)
{
    turn->fn(turn->arg, outcome);
    params_done(&turn->params);
    TAGGED_FREE(turn);
}

static void turn_refuse(struct turn *turn, int r)
{
    turn_answer(turn, &(struct store_outcome){.r = r});
}

static bool is_late(const struct turn *turn)
{
    return loop_now_ms(turn->turns->loop) >= turn->deadline_ms;
}

static void on_answer(void *arg, const struct store_outcome *outcome)
{
    struct turn *turn = CAST(turn, arg);
    struct aside *aside = turn->turns->aside;

    if (outcome->locked && aside) {
        metric_add(METRIC_STORE_LOCKED, 1);
        aside_again(aside, turn->key, &turn->link);
        return;
    }
    if (aside)
        aside_done(aside, turn->key);
    turn_answer(turn, outcome);
}

// Keeps a copy of the parameters for retries.
static void turn_send(struct turn *turn, enum store_lane lane)
{
    struct params params;

    params_copy(&params, &turn->params);
    turn->turns->call(turn->turns->store, lane, turn->statement, &params, on_answer, turn);
}

static void turn_try(void *arg, const char *key, struct list *item)
{
    struct turns *turns = CAST(turns, arg);
    struct turn *turn = LIST_ITEM(item, struct turn, link);

    if (is_late(turn)) {
        aside_next(turns->aside, key);
        turn_refuse(turn, -ERROR_BUSY);
        return;
    }
    turn_send(turn, turn->lane == STORE_MANY ? STORE_MANY : STORE_ASIDE);
}

static void turn_enter(struct turn *turn)
{
    struct aside *aside = turn->turns->aside;

    if (aside && aside_holds(aside, turn->key)) {
        aside_add(aside, turn->key, &turn->link);
        return;
    }
    if (aside)
        aside_begin(aside, turn->key);
    turn_send(turn, turn->lane);
}

static void turn_return(void *arg, struct list *item)
{
    const struct turns *turns = CAST(turns, arg);
    struct turn *turn = LIST_ITEM(item, struct turn, link);

    if (turns->aside)
        turn_enter(turn);
    else
        turn_refuse(turn, -ERROR_UNAVAILABLE);
}

int turns_new(struct loop *loop, struct store *store, turns_call_fn *call, int64_t wait_max_ms,
              struct turns **ret_turns)
{
    struct turns *turns = calloc(1, sizeof *turns);

    if (!turns)
        return -ERROR_MEMORY;
    *turns = (struct turns){
        .tag = TAG(turns), .loop = loop, .store = store, .call = call, .wait_max_ms = wait_max_ms};
    int r = aside_new(loop, turn_try, turn_return, turns, &turns->aside);
    if (r < 0) {
        TAGGED_FREE(turns);
        return r;
    }
    *ret_turns = turns;
    return 0;
}

void turns_change(struct turns *turns, enum store_lane lane, const char *key,
                  const struct statement *statement, struct params *params, store_fn *fn, void *arg)
{
    ASSERT(strlen(key) < ASIDE_KEY_SIZE && fn);
    struct turn *turn = memory_must_new(sizeof *turn);

    *turn = (struct turn){.tag = TAG(turn),
                          .turns = turns,
                          .lane = lane,
                          .statement = statement,
                          .params = *params,
                          .fn = fn,
                          .arg = arg,
                          .deadline_ms = loop_now_ms(turns->loop) + turns->wait_max_ms};
    *params = (struct params){0};
    memcpy(turn->key, key, strnlen(key, ASIDE_KEY_SIZE - 1));
    list_init(&turn->link);
    turn_enter(turn);
}

void turns_close(struct turns *turns)
{
    if (turns)
        aside_free(TAKE(turns->aside));
}

void turns_free(struct turns *turns)
{
    turns_close(turns);
    TAGGED_FREE(turns);
}
