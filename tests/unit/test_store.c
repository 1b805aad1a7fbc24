// SPDX-License-Identifier: Apache-2.0
// The store's calls: parameters, order, limits, and failures of one call among others.
#include "base/clock.h"
#include "store_fixture.h"

static const struct statement echo = {"echo", "SELECT $1::bigint"};
static const struct statement divide = {"divide", "SELECT 1 / (random() * 0)::integer"};
static const struct statement make = {"make",
                                      "CREATE TABLE things (n bigint PRIMARY KEY, above "
                                      "bigint REFERENCES things DEFERRABLE INITIALLY DEFERRED)"};
static const struct statement drop = {"drop", "DROP TABLE IF EXISTS things"};
static const struct statement add = {"add", "INSERT INTO things (n) VALUES ($1)"};
static const struct statement orphan = {"orphan", "INSERT INTO things VALUES (100, 99)"};
static const struct statement count = {"count", "SELECT count(*) FROM things"};

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests(tests, begin_migrated, end_group);
}
