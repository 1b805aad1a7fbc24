// SPDX-License-Identifier: Apache-2.0
// The store against a Postgres of its own, which is killed and frozen on the way. The loop runs in
// a thread; the test asks it and waits.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/embedded.h"
#include "base/error.h"
#include "migrated_postgres.h"
#include "postgres_group.h"
#include "store/session.h"
#include "store/store.h"

enum {
    ASKS_MAX = 64,
    QUEUE_MAX = 50,
    QUEUE_BYTES = 10000,
    STATEMENT_TIMEOUT_MS = 3000,
    PATIENCE_SECONDS = 30,
    AT_ONCE = 10
};

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

static int ups_now(void)
{
    pthread_mutex_lock(&world.lock);
    int ups = world.ups;
    pthread_mutex_unlock(&world.lock);
    return ups;
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

static const struct statement echo = {"echo", "SELECT $1::bigint"};
static const struct statement divide = {"divide", "SELECT 1 / (random() * 0)::integer"};
static const struct statement make = {"make",
                                      "CREATE TABLE things (n bigint PRIMARY KEY, above "
                                      "bigint REFERENCES things DEFERRABLE INITIALLY DEFERRED)"};
static const struct statement drop = {"drop", "DROP TABLE IF EXISTS things"};
static const struct statement add = {"add", "INSERT INTO things (n) VALUES ($1)"};
static const struct statement orphan = {"orphan", "INSERT INTO things VALUES (100, 99)"};
static const struct statement count = {"count", "SELECT count(*) FROM things"};

static void the_server_is_back(void)
{
    int ups = ups_now();
    assert_int_equal(postgres_do("start"), 0);
    wait_for(&world.ups, ups + 1);
    assert_int_equal(ask_one(&one).r, 0);
}

static void calls_made_while_first_connecting_wait(void **state)
{
    (void)state;
    open_store(postgres.url);
    struct ask ask = ask_one(&one);
    assert_int_equal(ask.r, 0);
    assert_int_equal(ask.rows, 1);
    assert_string_equal(ask.text, "1");
    close_store();
}

static const struct statement types = {
    "types",
    "SELECT concat_ws('|', $1, $2, $3, coalesce($4, 'null'), coalesce($5, 'null'), $6, $7, $8, $9, "
    "array_length($10, 1) IS NULL)"};

static void parameters_of_all_types_arrive_as_they_are(void **state)
{
    (void)state;
    struct ask ask = {.lane = STORE_READ, .statement = &types};
    params_text(&ask.params, "é");
    params_int(&ask.params, INT64_MIN);
    params_bool(&ask.params, true);
    params_text(&ask.params, NULL);
    params_text(&ask.params, NULL);
    params_text_n(&ask.params, "", 0);
    params_open_text_array(&ask.params);
    params_element_text_n(&ask.params, "a,b", 3);
    params_element_text_n(&ask.params, NULL, 0);
    params_element_text_n(&ask.params, "", 0);
    params_close_array(&ask.params);
    params_open_int_array(&ask.params);
    params_element_int(&ask.params, -1);
    params_element_int(&ask.params, INT64_MAX);
    params_close_array(&ask.params);
    params_open_bool_array(&ask.params);
    params_element_bool(&ask.params, false);
    params_element_bool(&ask.params, true);
    params_close_array(&ask.params);
    params_open_text_array(&ask.params);
    params_close_array(&ask.params);
    ask_all(&ask, 1);
    assert_int_equal(ask.r, 0);
    assert_string_equal(ask.text, "é|-9223372036854775808|t|null|null||{\"a,b\",NULL,\"\"}|"
                                  "{-1,9223372036854775807}|{f,t}|t");
}

static void a_lone_empty_text_is_no_null(void **state)
{
    (void)state;
    static const struct statement is_null = {"is_null", "SELECT $1::text IS NULL"};
    struct ask ask = {.lane = STORE_READ, .statement = &is_null};
    params_text(&ask.params, "");
    ask_all(&ask, 1);
    assert_string_equal(ask.text, "f");
}

static void parameters_that_do_not_fit_are_not_sent(void **state)
{
    (void)state;
    struct ask ask = {.lane = STORE_READ, .statement = &echo};
    for (int i = 0; i <= PARAMS_MAX; i++)
        params_int(&ask.params, i);
    ask_all(&ask, 1);
    assert_int_equal(ask.r, -ERROR_MEMORY);
    assert_false(ask.unknown);
}

static void parameters_of_other_types_than_before_are_not_sent(void **state)
{
    (void)state;
    struct ask asks[2] = {{.lane = STORE_WRITE, .statement = &echo},
                          {.lane = STORE_WRITE, .statement = &echo}};
    params_int(&asks[0].params, 5);
    params_text(&asks[1].params, "5");
    ask_all(asks, 2);
    assert_int_equal(asks[0].r, 0);
    assert_int_equal(asks[1].r, -ERROR_INTERNAL);
}

static void a_lane_answers_in_order(void **state)
{
    (void)state;
    struct ask asks[QUEUE_MAX];
    for (int i = 0; i < QUEUE_MAX; i++) {
        asks[i] = (struct ask){.lane = STORE_WRITE, .statement = &echo};
        params_int(&asks[i].params, i);
    }
    ask_all(asks, QUEUE_MAX);
    for (int i = 0; i < QUEUE_MAX; i++) {
        assert_int_equal(asks[i].r, 0);
        assert_int_equal(asks[i].order, i);
        assert_int_equal(strtol(asks[i].text, NULL, 10), i);
    }
}

static void a_full_queue_refuses(void **state)
{
    (void)state;
    struct ask asks[QUEUE_MAX + 2];
    for (int i = 0; i < QUEUE_MAX + 2; i++)
        asks[i] = (struct ask){.lane = STORE_WRITE, .statement = &one};
    ask_all(asks, QUEUE_MAX + 2);
    for (int i = 0; i < QUEUE_MAX + 2; i++) {
        assert_int_equal(asks[i].r, i < QUEUE_MAX ? 0 : -ERROR_BUSY);
        assert_false(asks[i].unknown);
    }
}

static struct ask length_ask(size_t length)
{
    static const struct statement statement = {"length", "SELECT length($1::text)"};
    static char text[2 * QUEUE_BYTES];
    struct ask ask = {.lane = STORE_WRITE, .statement = &statement};
    memset(text, 'x', sizeof text);
    params_text_n(&ask.params, text, length);
    return ask;
}

static void parameters_are_bounded_in_bytes(void **state)
{
    (void)state;
    struct ask asks[] = {length_ask(QUEUE_BYTES - 1), length_ask(2), length_ask(1), length_ask(1)};
    const int expected[] = {0, -ERROR_BUSY, 0, -ERROR_BUSY};
    ask_all(asks, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(asks[i].r, expected[i]);
        assert_false(asks[i].unknown);
    }
}

static void a_statement_of_more_bytes_than_may_goes_alone(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) { // what was answered makes room
        struct ask asks[] = {length_ask(QUEUE_BYTES + 1), length_ask(1)};
        ask_all(asks, 2);
        assert_int_equal(asks[0].r, 0);
        assert_int_equal(strtol(asks[0].text, NULL, 10), QUEUE_BYTES + 1);
        assert_int_equal(asks[1].r, -ERROR_BUSY);
    }
}

static void a_failed_call_undoes_itself_and_no_other(void **state)
{
    (void)state;
    assert_int_equal(ask_one(&drop).r, 0);
    assert_int_equal(ask_one(&make).r, 0);
    const struct statement *const statements[] = {&add, &divide, &add, &add, &divide, &add};
    struct ask asks[6];
    for (int i = 0; i < 6; i++) {
        asks[i] = (struct ask){.lane = STORE_WRITE, .statement = statements[i]};
        if (statements[i] == &add)
            params_int(&asks[i].params, i == 3 ? 0 : i); // the fourth is there already
    }
    ask_all(asks, 6);
    const int expected[] = {0, -ERROR_INTERNAL, 0, -ERROR_INTERNAL, -ERROR_INTERNAL, 0};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(asks[i].r, expected[i]);
        assert_false(asks[i].unknown);
    }
    assert_string_equal(ask_one(&count).text, "3");
}

// The constraint is looked at when the Sync commits, after the statement itself went well.
static void a_commit_that_fails_is_reported(void **state)
{
    (void)state;
    assert_int_equal(ask_one(&drop).r, 0);
    assert_int_equal(ask_one(&make).r, 0);
    assert_int_equal(ask_one(&orphan).r, -ERROR_INTERNAL);
    assert_string_equal(ask_one(&count).text, "0");
}

static void a_statement_that_could_not_be_prepared_is_prepared_again(void **state)
{
    (void)state;
    static const struct statement late = {"late", "SELECT n FROM things"};
    assert_int_equal(ask_one(&drop).r, 0);
    assert_int_equal(ask_one(&late).r, -ERROR_INTERNAL);
    assert_int_equal(ask_one(&make).r, 0);
    assert_int_equal(ask_one(&late).r, 0);
}

static void a_statement_over_its_time_is_undone(void **state)
{
    (void)state;
    struct ask ask = ask_one(&nap);
    assert_int_equal(ask.r, -ERROR_BUSY);
    assert_false(ask.unknown);
    assert_int_equal(ask_one(&one).r, 0);
}

static void the_lanes_do_not_wait_for_one_another(void **state)
{
    (void)state;
    struct ask asks[2] = {{.lane = STORE_SYNC, .statement = &nap},
                          {.lane = STORE_READ, .statement = &one}};
    ask_all(asks, 2);
    assert_int_equal(asks[0].r, -ERROR_BUSY);
    assert_int_equal(asks[1].r, 0);
    assert_int_equal(asks[1].order, 0);
}

// Long replies that are read while the ones before them are worked on.
enum { LONG_REPLIES = 40, WORK_US = 2000, REPLIES_A_TURN = 2 };

static const struct statement rows = {"rows",
                                      "SELECT i, repeat('x', 100) FROM generate_series(1, 500) i"};

static struct {
    int64_t turn_us; // when the present turn began
    int replies;     // taken in it
    int most;
} share;

static void work(void *arg, const struct store_outcome *outcome)
{
    int64_t until_us = clock_monotonic_us() + WORK_US;

    while (clock_monotonic_us() < until_us)
        store_pull(world.store, STORE_BULK);
    share.replies = loop_now_us(world.loop) == share.turn_us ? share.replies + 1 : 1;
    share.turn_us = loop_now_us(world.loop);
    share.most = share.replies > share.most ? share.replies : share.most;
    answer(arg, outcome);
}

static void work_all(void *arg)
{
    (void)arg;
    for (int i = 0; i < world.count; i++)
        store_call(world.store, STORE_BULK, &rows, &world.asks[i].params, work, &world.asks[i]);
}

static void a_turn_takes_its_share_of_replies(void **state)
{
    (void)state;
    struct ask asks[LONG_REPLIES] = {0};
    world.asks = asks;
    world.count = LONG_REPLIES;
    world.answered = 0;
    assert_int_equal(loop_post(world.loop, work_all, NULL), 0);
    wait_for(&world.answered, LONG_REPLIES);
    for (int i = 0; i < LONG_REPLIES; i++) {
        assert_int_equal(asks[i].rows, 500);
        assert_int_equal(asks[i].order, i);
    }
    assert_in_range(share.most, 1, REPLIES_A_TURN);
}

static void a_killed_server_leaves_the_outcome_unknown(void **state)
{
    (void)state;
    assert_int_equal(ask_one(&one).r, 0);
    struct ask asks[2] = {{.lane = STORE_WRITE, .statement = &nap},
                          {.lane = STORE_WRITE, .statement = &one}};
    begin(asks, 2);
    assert_int_equal(postgres_do("kill"), 0);
    wait_for(&world.answered, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(asks[i].r, -ERROR_UNAVAILABLE);
        assert_true(asks[i].unknown);
    }
    struct ask other = {.unknown = true};
    for (int calls = 0; other.unknown; calls++) { // a lane that has not noticed sends one more call
        assert_in_range(calls, 0, 2);
        other = (struct ask){.lane = STORE_READ, .statement = &one};
        ask_all(&other, 1);
        assert_int_equal(other.r, -ERROR_UNAVAILABLE);
    }
    the_server_is_back();
}

static void a_frozen_server_is_given_up_in_time(void **state)
{
    (void)state;
    assert_int_equal(ask_one(&one).r, 0);
    assert_int_equal(postgres_do("freeze"), 0);
    int64_t begin_ms = clock_monotonic_ms();
    struct ask ask = ask_one(&one);
    int64_t took_ms = clock_monotonic_ms() - begin_ms;
    assert_int_equal(ask.r, -ERROR_UNAVAILABLE);
    assert_true(ask.unknown);
    assert_in_range(took_ms, STATEMENT_TIMEOUT_MS, STATEMENT_TIMEOUT_MS + 9000);
    int ups = ups_now();
    assert_int_equal(postgres_do("thaw"), 0);
    wait_for(&world.ups, ups + 1);
    assert_int_equal(ask_one(&one).r, 0);
}

static void a_backend_that_is_terminated_leaves_the_outcome_unknown(void **state)
{
    (void)state;
    static const struct statement end = {"end", "SELECT pg_terminate_backend(pg_backend_pid())"};
    assert_int_equal(ask_one(&one).r, 0);
    int ups = ups_now();
    struct ask ask = ask_one(&end);
    assert_int_equal(ask.r, -ERROR_UNAVAILABLE);
    assert_true(ask.unknown);
    wait_for(&world.ups, ups + 1);
    assert_int_equal(ask_one(&one).r, 0);
}

static void without_a_server_calls_are_refused_after_a_grace(void **state)
{
    (void)state;
    open_store("postgres://nobody@127.0.0.1:1/nothing");
    int64_t begin_ms = clock_monotonic_ms();
    assert_int_equal(ask_one(&one).r, -ERROR_UNAVAILABLE);
    assert_in_range(clock_monotonic_ms() - begin_ms, 500, 5000);
    begin_ms = clock_monotonic_ms();
    for (int i = 0; i < AT_ONCE; i++) {
        struct ask ask = ask_one(&one);
        assert_int_equal(ask.r, -ERROR_UNAVAILABLE);
        assert_false(ask.unknown);
    }
    assert_in_range(clock_monotonic_ms() - begin_ms, 0, AT_ONCE * 500 - 1);
    close_store();
}

static void freeing_the_store_answers_what_waits(void **state)
{
    (void)state;
    open_store(postgres.url);
    assert_int_equal(ask_one(&one).r, 0);
    struct ask ask = {.lane = STORE_WRITE, .statement = &nap};
    begin(&ask, 1);
    close_store();
    assert_int_equal(world.answered, 1);
    assert_int_equal(ask.r, -ERROR_UNAVAILABLE);
}

static void functions_rename(const char *from, const char *to)
{
    char script[128];
    struct session *session;
    snprintf(script, sizeof script, "ALTER SCHEMA %s RENAME TO %s", from, to);
    assert_int_equal(session_new(postgres.url, STATEMENT_TIMEOUT_MS, &session), 0);
    assert_int_equal(session_script(session, script), 0);
    session_free(session);
}

// As when the database was away at the start of an instance, and was not migrated either.
static void without_the_functions_of_this_version_no_lane_comes_up(void **state)
{
    (void)state;
    functions_rename(embedded_functions_schema, "hidden");
    open_store(postgres.url);
    struct ask ask = ask_one(&one);
    assert_int_equal(ask.r, -ERROR_UNAVAILABLE);
    assert_int_equal(ups_now(), 0);
    functions_rename("hidden", embedded_functions_schema);
    wait_for(&world.ups, 1);
    close_store();
}

static void a_url_that_is_none_is_refused(void **state)
{
    (void)state;
    const struct store_options options = {.database_url = "postgres://[", .queue_max = 1};
    struct store *store;
    assert_int_equal(loop_new(&world.loop), 0);
    assert_int_equal(store_new(world.loop, &options, &store), -ERROR_INVALID_ARGUMENTS);
    loop_free(world.loop);
}

// What a connection begins with needs the functions.
static int begin_migrated(void **state)
{
    int r = begin_group(state);
    return r < 0 ? r : postgres_migrate();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_made_while_first_connecting_wait),
        TEST(parameters_of_all_types_arrive_as_they_are),
        TEST(a_lone_empty_text_is_no_null),
        TEST(parameters_that_do_not_fit_are_not_sent),
        TEST(parameters_of_other_types_than_before_are_not_sent),
        TEST(a_lane_answers_in_order),
        TEST(a_full_queue_refuses),
        TEST(parameters_are_bounded_in_bytes),
        TEST(a_statement_of_more_bytes_than_may_goes_alone),
        TEST(a_failed_call_undoes_itself_and_no_other),
        TEST(a_commit_that_fails_is_reported),
        TEST(a_statement_that_could_not_be_prepared_is_prepared_again),
        TEST(a_statement_over_its_time_is_undone),
        TEST(the_lanes_do_not_wait_for_one_another),
        TEST(a_turn_takes_its_share_of_replies),
        TEST(a_killed_server_leaves_the_outcome_unknown),
        TEST(a_frozen_server_is_given_up_in_time),
        TEST(a_backend_that_is_terminated_leaves_the_outcome_unknown),
        cmocka_unit_test(without_a_server_calls_are_refused_after_a_grace),
        cmocka_unit_test(freeing_the_store_answers_what_waits),
        cmocka_unit_test(without_the_functions_of_this_version_no_lane_comes_up),
        cmocka_unit_test(a_url_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, begin_migrated, end_group);
}
