// SPDX-License-Identifier: Apache-2.0
// Group commit around rows that another session keeps locked: who needs them waits, all others go
// on.
#include "store/batcher.h"

#include "base/check.h"
#include "base/error.h"
#include "base/loop.h"
#include "migrated_postgres.h"
#include "postgres_group.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <libpq-fe.h>

enum { THINGS = 24, BATCH_ITEMS = 4, QUEUE_MAX = 12, WAIT_MAX_MS = 60000, SHORT_MS = 300 };
enum { LOCK_WAIT_MS = 50, STATEMENT_TIMEOUT_MS = 20000 };

// An item: it adds one to a row of the table `things`.
struct thing {
    struct batch_item item;
    uint32_t tag;
    char row[2];
    int r;     // 1: not answered
    int order; // which answer it was
};

static struct {
    struct loop *loop;
    struct store *store;
    struct batcher *batcher;
    pthread_t thread;
    PGconn *other; // of the test's thread; keeps rows locked
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct thing things[THINGS];
    int count;
    int added;
    int answered;
    bool keeps_order;
} scene = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static const struct statement ADD = {
    "add", "UPDATE things t SET times = t.times + 1 WHERE t.id = ANY ($1)"};
static const struct statement LOCKED = {
    "locked", "SELECT CASE WHEN (SELECT 1 FROM things t WHERE t.id = k.id FOR UPDATE SKIP LOCKED) "
              "IS NULL THEN 1 ELSE 0 END"
              " FROM unnest($1) WITH ORDINALITY AS k (id, n) ORDER BY k.n"};

static void thing_answer(struct thing *thing, int r)
{
    pthread_mutex_lock(&scene.lock);
    thing->r = r;
    thing->order = scene.answered++;
    pthread_cond_broadcast(&scene.changed);
    pthread_mutex_unlock(&scene.lock);
}

static const struct statement *rows_fill(struct params *params, const struct batch *batch,
                                         const struct statement *statement)
{
    params_open_text_array(params);
    for (int i = 0; i < batch->count; i++)
        params_element_text(params, CAST_CONST(thing, batch->items[i])->row);
    params_close_array(params);
    return statement;
}

static const struct statement *on_params(struct params *params, const struct batch *batch)
{
    return rows_fill(params, batch, &ADD);
}

static const struct statement *on_locked_params(struct params *params, const struct batch *batch)
{
    return rows_fill(params, batch, &LOCKED);
}

static void on_outcome(struct batch *batch, const struct store_outcome *outcome)
{
    for (int i = 0; outcome->r == 0 && i < batch->count; i++)
        thing_answer(CAST(thing, TAKE(batch->items[i])), 0);
    batch_end(batch, outcome->r);
}

static void on_key(const struct batch_item *item, int row, char *ret_key)
{
    assert_int_equal(row, 1);
    snprintf(ret_key, ASIDE_KEY_SIZE, "%s", CAST_CONST(thing, item)->row);
}

static void on_fail(struct batch_item *item, int r)
{
    thing_answer(CAST(thing, item), r);
}

static bool on_same_row(const struct batch_item *other, const struct batch_item *item)
{
    return scene.keeps_order &&
           strcmp(CAST_CONST(thing, other)->row, CAST_CONST(thing, item)->row) == 0;
}

static const struct batcher_ops thing_ops = {
    .params = on_params,
    .locked = on_locked_params,
    .answer = on_outcome,
    .key_write = on_key,
    .fail = on_fail,
    .excludes = on_same_row,
    .precedes = on_same_row,
    .rows = 1,
};

static void other_do(const char *sql)
{
    PGresult *result = PQexec(scene.other, sql);
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    assert_true(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK);
}

static void row_lock(const char *sql)
{
    other_do("BEGIN");
    other_do(sql);
}

static void row_unlock(void)
{
    other_do("COMMIT");
}

// How many items were added to the rows, in all.
static void times_are(const char *expected)
{
    PGresult *result = PQexec(scene.other, "SELECT sum(times) FROM things");

    assert_string_equal(PQgetvalue(result, 0, 0), expected);
    PQclear(result);
}

static void batcher_begin(int64_t wait_max_ms)
{
    const struct batcher_options options = {
        .store = scene.store,
        .lane = STORE_WRITE,
        .limits = {.depth = 2,
                   .batch_max = BATCH_ITEMS,
                   .batch_bytes = 1000,
                   .queue_max = QUEUE_MAX,
                   .queue_bytes = 1000},
        .wait_max_ms = wait_max_ms,
        .full = METRIC_POST_QUEUE_FULL,
    };

    assert_int_equal(batcher_new(scene.loop, &options, &thing_ops, NULL, &scene.batcher), 0);
}

static const char TABLES[] =
    "SET client_min_messages = error; DROP TABLE IF EXISTS things, hidden; CREATE TABLE hidden (n "
    "integer); INSERT INTO hidden "
    "VALUES (0);"
    "CREATE TABLE things (id text PRIMARY KEY, times bigint NOT NULL DEFAULT 0);"
    "INSERT INTO things (id) SELECT unnest('{a,b,c,d,e,f,h}'::text[]);"
    "CREATE OR REPLACE FUNCTION things_touched() RETURNS trigger LANGUAGE plpgsql AS"
    " $$ BEGIN UPDATE hidden SET n = n + 1; RETURN NEW; END $$;"
    "CREATE TRIGGER touched BEFORE UPDATE ON things FOR EACH ROW WHEN (NEW.id = 'h') EXECUTE "
    "FUNCTION things_touched()";

static void *loop_thread(void *arg)
{
    loop_run(scene.loop);
    return arg;
}

static void on_up(void *arg)
{
    int *lanes = arg;

    pthread_mutex_lock(&scene.lock);
    (*lanes)++;
    pthread_cond_broadcast(&scene.changed);
    pthread_mutex_unlock(&scene.lock);
}

// Waits until *number is at least `least`; the watchdog ends a test that waits for ever.
static void wait_for(const int *number, int least)
{
    pthread_mutex_lock(&scene.lock);
    while (*number < least)
        pthread_cond_wait(&scene.changed, &scene.lock);
    pthread_mutex_unlock(&scene.lock);
}

static void store_begin(int *lanes_up)
{
    const struct store_options options = {.database_url = postgres.url,
                                          .connect_timeout_ms = STATEMENT_TIMEOUT_MS,
                                          .statement_timeout_ms = STATEMENT_TIMEOUT_MS,
                                          .lock_wait_ms = LOCK_WAIT_MS,
                                          .queue_max = THINGS,
                                          .queue_bytes = 10000};

    assert_int_equal(loop_new(&scene.loop), 0);
    assert_int_equal(store_new(scene.loop, &options, &scene.store), 0);
    store_on_up(scene.store, STORE_WRITE, on_up, lanes_up);
    store_on_up(scene.store, STORE_ASIDE, on_up, lanes_up);
}

static int begin_for(int64_t wait_max_ms)
{
    static int lanes_up;

    lanes_up = scene.count = scene.added = scene.answered = 0;
    scene.keeps_order = false;
    scene.other = PQconnectdb(postgres.url);
    other_do(TABLES);
    store_begin(&lanes_up);
    batcher_begin(wait_max_ms);
    assert_int_equal(pthread_create(&scene.thread, NULL, loop_thread, NULL), 0);
    wait_for(&lanes_up, 2);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    return begin_for(WAIT_MAX_MS);
}

static int begin_short(void **state)
{
    (void)state;
    return begin_for(SHORT_MS);
}

static int end(void **state)
{
    (void)state;
    loop_stop(scene.loop);
    pthread_join(scene.thread, NULL);
    store_free(scene.store);
    batcher_free(scene.batcher);
    loop_free(scene.loop);
    PQfinish(scene.other);
    return 0;
}

static void add_all(void *arg)
{
    (void)arg;
    for (; scene.added < scene.count; scene.added++) {
        struct thing *thing = &scene.things[scene.added];
        assert_int_equal(batcher_add(scene.batcher, &thing->item), 0);
    }
}

// Adds an item for each of the rows, one letter each.
static void add(const char *rows)
{
    for (; *rows != '\0'; rows++) {
        struct thing *thing = &scene.things[scene.count++];
        assert_in_range(scene.count, 1, THINGS);
        *thing = (struct thing){.tag = TAG(thing), .row = {*rows, 0}, .r = 1};
        thing->item.item.user_id = thing->row;
        thing->item.item.bytes = 1;
    }
    assert_int_equal(loop_post(scene.loop, add_all, NULL), 0);
}

static void answered(int count)
{
    wait_for(&scene.answered, count);
}

// How many wait, queued or aside, as the loop knows.
static void count_waiting(void *arg)
{
    int *waiting = arg;

    pthread_mutex_lock(&scene.lock);
    *waiting = batcher_waiting(scene.batcher);
    pthread_cond_broadcast(&scene.changed);
    pthread_mutex_unlock(&scene.lock);
}

static int waiting(void)
{
    static int count;

    count = -1;
    assert_int_equal(loop_post(scene.loop, count_waiting, &count), 0);
    wait_for(&count, 0);
    return count;
}

static void free_rows_are_committed(void **state)
{
    (void)state;
    add("abcdef");
    answered(6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(scene.things[i].r, 0);
    times_are("6");
    assert_int_equal(waiting(), 0);
}

// Of a batch, and of what comes later, only items for the locked row wait; they follow in order.
static void who_needs_a_locked_row_waits_alone(void **state)
{
    (void)state;
    scene.keeps_order = true;
    row_lock("SELECT FROM things WHERE id = 'b' FOR UPDATE");
    add("abcd");
    answered(3);
    add("beb");
    answered(4);
    assert_int_equal(scene.things[1].r, 1);
    assert_int_equal(waiting(), 3);
    row_unlock();
    answered(7);
    assert_true(scene.things[1].order < scene.things[4].order);
    assert_true(scene.things[4].order < scene.things[6].order);
    times_are("7");
}

// The statement waits for a row that `locked` does not know: the items are tried one by one.
static void an_unknown_lock_is_found_by_trying(void **state)
{
    (void)state;
    row_lock("SELECT FROM hidden FOR UPDATE");
    add("ahcd");
    answered(3);
    assert_int_equal(scene.things[1].r, 1);
    row_unlock();
    answered(4);
    times_are("4");
}

static void at_most_half_of_the_queue_waits(void **state)
{
    int64_t full = metric_value(METRIC_POST_QUEUE_FULL);

    (void)state;
    scene.keeps_order = true;
    row_lock("SELECT FROM things WHERE id = 'b' FOR UPDATE");
    for (int i = 0; i < QUEUE_MAX / 2; i++) {
        add("ba"); // the second is answered once the first is aside
        answered(i + 1);
    }
    add("ba");
    answered(2 + QUEUE_MAX / 2);
    assert_int_equal(scene.things[QUEUE_MAX].r, -ERROR_BUSY);
    assert_int_equal(metric_value(METRIC_POST_QUEUE_FULL) - full, 1);
    row_unlock();
    answered(2 + QUEUE_MAX);
    times_are("13"); // 1 + QUEUE_MAX
}

static void a_long_lock_fails_what_waits_for_it(void **state)
{
    (void)state;
    row_lock("SELECT FROM things WHERE id = 'b' FOR UPDATE");
    add("b");
    answered(1);
    assert_int_equal(scene.things[0].r, -ERROR_UNAVAILABLE);
    row_unlock();
    times_are("0");
}

static void a_finished_batcher_fails_what_waits(void **state)
{
    row_lock("SELECT FROM things WHERE id = 'b' FOR UPDATE");
    add("ba");
    answered(1);
    assert_int_equal(end(state), 0);
    assert_int_equal(scene.things[0].r, -ERROR_UNAVAILABLE);
}

static int begin_group_migrated(void **state)
{
    int r = begin_group(state);

    return r < 0 ? r : postgres_migrate();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(free_rows_are_committed, begin, end),
        cmocka_unit_test_setup_teardown(who_needs_a_locked_row_waits_alone, begin, end),
        cmocka_unit_test_setup_teardown(an_unknown_lock_is_found_by_trying, begin, end),
        cmocka_unit_test_setup_teardown(at_most_half_of_the_queue_waits, begin, end),
        cmocka_unit_test_setup_teardown(a_long_lock_fails_what_waits_for_it, begin_short, end),
        cmocka_unit_test_setup(a_finished_batcher_fails_what_waits, begin),
    };
    return cmocka_run_group_tests(tests, begin_group_migrated, end_group);
}
