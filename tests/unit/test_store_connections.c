// SPDX-License-Identifier: Apache-2.0
// The store's connections: to a Postgres that is killed, frozen, not there, or not migrated.
#include "base/clock.h"
#include "base/embedded.h"
#include "store/session.h"
#include "store_fixture.h"

enum { AT_ONCE = 10 };

static int ups_now(void)
{
    pthread_mutex_lock(&world.lock);
    int ups = world.ups;
    pthread_mutex_unlock(&world.lock);
    return ups;
}

// After a command that lets the server answer again.
static void the_server_is_back(const char *command)
{
    int ups = ups_now();
    assert_int_equal(postgres_do(command), 0);
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
    the_server_is_back("start");
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
    the_server_is_back("thaw");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_made_while_first_connecting_wait),
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
