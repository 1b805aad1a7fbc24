// SPDX-License-Identifier: Apache-2.0
// Sessions against a Postgres of their own, which is killed and frozen on the way.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "postgres_group.h"
#include "store/session.h"

enum { STATEMENT_TIMEOUT_MS = 1000, NEVER_MS = 600000 };

static int setup(void **state)
{
    return session_new(postgres.url, STATEMENT_TIMEOUT_MS, (struct session **)state);
}

static int teardown(void **state)
{
    session_free(*state);
    return 0;
}

static void assert_first(struct session *session, const struct statement *statement,
                         const char *expected)
{
    CLEANUP_RESULT struct result *result = NULL;
    assert_int_equal(session_call(session, statement, NULL, &result), 0);
    assert_string_equal(result_text(result, 0, 0), expected);
}

// The first column of the first row. Each use is a statement of its own, named after its line.
#define LINE_TEXT_(line) "line" #line
#define LINE_TEXT(line) LINE_TEXT_(line)
#define assert_answer(session, sql_text, expected)                                                 \
    do {                                                                                           \
        static const struct statement statement = {LINE_TEXT(__LINE__), sql_text};                 \
        assert_first(session, &statement, expected);                                               \
    } while (0)

static const struct statement sum = {"sum", "SELECT $1::bigint + 1, NULL, true, 'text', -7"};

static void results_are_read_by_position(void **state)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};
    params_int(&params, 41);
    assert_int_equal(session_call(*state, &sum, &params, &result), 0);
    assert_int_equal(params.count, 0);
    assert_int_equal(result_rows(result), 1);
    assert_int_equal(result_int(result, 0, 0), 42);
    assert_true(result_is_null(result, 0, 1));
    assert_int_equal(result_int(result, 0, 1), 0);
    assert_string_equal(result_text(result, 0, 1), "");
    assert_true(result_bool(result, 0, 2));
    assert_string_equal(result_text(result, 0, 3), "text");
    assert_int_equal(result_length(result, 0, 3), 4);
    assert_int_equal(result_int(result, 0, 4), -7);
}

static void arrays_of_integers_are_counted_and_read_as_far_as_they_fit(void **state)
{
    static const struct statement arrays = {
        "arrays", "SELECT '{7,-9223372036854775808,3}'::bigint[], '{}'::bigint[], NULL::bigint[]"};
    CLEANUP_RESULT struct result *result = NULL;
    int64_t numbers[3] = {0};
    assert_int_equal(session_call(*state, &arrays, NULL, &result), 0);
    assert_int_equal(result_ints(result, 0, 0, numbers, 2), 3);
    assert_int_equal(numbers[0], 7);
    assert_int_equal(numbers[1], INT64_MIN);
    assert_int_equal(numbers[2], 0);
    assert_int_equal(result_ints(result, 0, 1, numbers, 3), 0);
    assert_int_equal(result_ints(result, 0, 2, numbers, 3), 0);
    assert_int_equal(result_ints(result, 1, 0, numbers, 3), 0);
}

static void reading_outside_of_a_result_finds_nothing(void **state)
{
    CLEANUP_RESULT struct result *result = NULL;
    assert_int_equal(session_call(*state, &one, NULL, &result), 0);
    assert_int_equal(result_int(result, 1, 0), 0);
    assert_int_equal(result_length(result, 0, 1), 0);
    assert_string_equal(result_text(result, -1, 0), "");
    assert_true(result_is_null(result, 0, 7));
    assert_false(result_bool(result, 5, 5));
}

static void sessions_have_their_settings(void **state)
{
    assert_answer(*state, "SHOW plan_cache_mode", "force_generic_plan");
    assert_answer(*state, "SHOW statement_timeout", "1s");
    assert_answer(*state, "SHOW lock_timeout", "500ms");
    assert_answer(*state, "SHOW timezone", "UTC");
    assert_answer(*state, "SHOW synchronous_commit", "on");
    assert_int_equal(session_relax(*state), 0);
    assert_answer(*state, "SHOW synchronous_commit", "off");
}

static void errors_are_told_apart_and_the_session_lives_on(void **state)
{
    static const struct statement wrong = {"wrong", "SELECT nothing FROM nowhere"};
    struct result *result = NULL;
    assert_int_equal(session_call(*state, &wrong, NULL, &result), -ERROR_INTERNAL);
    assert_int_equal(session_call(*state, &nap, NULL, &result), -ERROR_BUSY);
    assert_null(result);
    assert_answer(*state, "SELECT 1", "1");
}

static void a_script_is_done_as_a_whole_or_not_at_all(void **state)
{
    assert_int_equal(session_script(*state, "CREATE TABLE a (n int); INSERT INTO a VALUES (1)"), 0);
    assert_int_equal(session_script(*state, "INSERT INTO a VALUES (2); SELECT 1 / 0"),
                     -ERROR_INTERNAL);
    assert_answer(*state, "SELECT count(*) FROM a", "1");
}

static void a_session_comes_back_with_its_server(void **state)
{
    struct result *result = NULL;
    assert_answer(*state, "SELECT 1", "1");
    assert_int_equal(session_relax(*state), 0);
    assert_int_equal(postgres_do("kill"), 0);
    assert_int_equal(session_call(*state, &one, NULL, &result), -ERROR_UNAVAILABLE);
    assert_int_equal(session_call(*state, &one, NULL, &result), -ERROR_UNAVAILABLE);
    assert_int_equal(postgres_do("start"), 0);
    assert_answer(*state, "SHOW synchronous_commit", "off");
}

static void a_frozen_server_holds_no_thread_for_ever(void **state)
{
    struct result *result = NULL;
    assert_answer(*state, "SELECT 1", "1");
    assert_int_equal(postgres_do("freeze"), 0);
    int64_t begin_ms = clock_monotonic_ms();
    assert_int_equal(session_call(*state, &one, NULL, &result), -ERROR_UNAVAILABLE);
    assert_in_range(clock_monotonic_ms() - begin_ms, STATEMENT_TIMEOUT_MS,
                    STATEMENT_TIMEOUT_MS + 9000);
    assert_int_equal(postgres_do("thaw"), 0);
    assert_answer(*state, "SELECT 1", "1");
}

static void *ask_frozen(void *arg)
{
    struct result *result = NULL;
    int r = session_call(arg, &one, NULL, &result);
    return (void *)(intptr_t)r;
}

static void a_session_that_is_stopped_waits_no_more(void **state)
{
    struct session *session = NULL;
    struct result *result = NULL;
    pthread_t thread;
    void *r;
    (void)state;
    assert_int_equal(session_new(postgres.url, NEVER_MS, &session), 0);
    assert_answer(session, "SELECT 1", "1");
    assert_int_equal(postgres_do("freeze"), 0);
    assert_int_equal(pthread_create(&thread, NULL, ask_frozen, session), 0);
    session_stop(session);
    assert_int_equal(pthread_join(thread, &r), 0);
    assert_int_equal((intptr_t)r, -ERROR_UNAVAILABLE);
    assert_int_equal(session_call(session, &one, NULL, &result), -ERROR_UNAVAILABLE);
    assert_int_equal(postgres_do("thaw"), 0);
    session_free(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(results_are_read_by_position),
        TEST(arrays_of_integers_are_counted_and_read_as_far_as_they_fit),
        TEST(reading_outside_of_a_result_finds_nothing),
        TEST(sessions_have_their_settings),
        TEST(errors_are_told_apart_and_the_session_lives_on),
        TEST(a_script_is_done_as_a_whole_or_not_at_all),
        TEST(a_session_comes_back_with_its_server),
        TEST(a_frozen_server_holds_no_thread_for_ever),
        cmocka_unit_test(a_session_that_is_stopped_waits_no_more),
    };
    return cmocka_run_group_tests(tests, begin_group, end_group);
}
