// SPDX-License-Identifier: Apache-2.0
// How far the reading of a backlog has got: which channels it goes through, in which pass, and what
// its place says meanwhile. The rows are made here; Postgres is never reached.
#include <libpq-fe.h>

#include "../../src/gateway/core.h"
#include "../../src/gateway/resume/resume.h"
#include "../../src/gateway/resume/resume_ops.h"
#include "../../src/gateway/resume/resume_state.h"
#include "../../src/store/postgres_internal.h"
#include "store/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { COLUMNS = RESUME_THREADS + 1, MEMBER_SEQ = 3, HEAD_SEQ = 9, NOW_XID = 100 };

enum row_flag { LEFT = 1, SECOND = 2, THREADS = 4 };

struct fixture {
    struct gateway gateway;
    struct actor actor;
    struct place place;
    struct resume_ops ops;
    PGresult *rows;
    struct resume *resume;
    bool is_ready;
    int overs; // how often the ops were called
    int fails;
};

static bool is_ready(void *arg)
{
    return ((struct fixture *)arg)->is_ready;
}

static void over(void *arg)
{
    ((struct fixture *)arg)->overs++;
}

static void give_up(void *arg)
{
    ((struct fixture *)arg)->fails++;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct store_options options = {.database_url = "postgres:///none?host=/nonexistent",
                                    .connect_timeout_ms = 1000,
                                    .statement_timeout_ms = 1000,
                                    .queue_max = 100,
                                    .queue_bytes = 1 << 20};
    PGresAttDesc columns[COLUMNS];
    char name[] = "column";

    memset(columns, 0, sizeof columns);
    for (int i = 0; i < COLUMNS; i++)
        columns[i].name = name;
    f->rows = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    assert_true(PQsetResultAttrs(f->rows, COLUMNS, columns));
    f->ops = (struct resume_ops){.is_ready = is_ready, .over = over, .fail = give_up};
    (void)snprintf(f->actor.user_id, sizeof f->actor.user_id, "U1");
    assert_int_equal(loop_new(&f->gateway.loop), 0);
    assert_int_equal(store_new(f->gateway.loop, &options, &f->gateway.store), 0);
    *state = f;
    return 0;
}

// A question that was asked is answered by the end of the store, which frees its resume.
static int teardown(void **state)
{
    struct fixture *f = *state;

    resume_free(f->resume);
    store_free(f->gateway.store);
    assert_int_equal(f->gateway.asked, 0);
    loop_free(f->gateway.loop);
    result_free(postgres_result(f->rows));
    free(f);
    return 0;
}

static void value_set(struct fixture *f, int row, int column, const char *value)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%s", value);
    assert_true(PQsetvalue(f->rows, row, column, text, (int)strlen(text)));
}

static void int_set(struct fixture *f, int row, int column, int number)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%d", number);
    value_set(f, row, column, text);
}

// A channel of the user's, as the answer to resume_statement has it.
static void row_add(struct fixture *f, const char *channel_id, unsigned flags)
{
    int row = PQntuples(f->rows);

    int_set(f, row, RESUME_XID, NOW_XID);
    int_set(f, row, RESUME_SECONDS, 1);
    value_set(f, row, RESUME_CHANNEL, channel_id);
    int_set(f, row, RESUME_SEQ, HEAD_SEQ);
    value_set(f, row, RESUME_ACTIVE, flags & LEFT ? "f" : "t");
    int_set(f, row, RESUME_MEMBER_SEQ, MEMBER_SEQ);
    value_set(f, row, RESUME_IS_SECOND, flags & SECOND ? "t" : "f");
    value_set(f, row, RESUME_THREADS, flags & THREADS ? "t" : "f");
}

static struct resume *begin(struct fixture *f)
{
    const struct result *rows = postgres_result(f->rows);

    f->resume = resume_new(&f->gateway, &f->actor, &f->place, &f->ops, f, rows);
    assert_non_null(f->resume);
    return f->resume;
}

// All rows, those of the channels in `with_events` with events.
static struct resume *begin_with(struct fixture *f, const char *with_events)
{
    struct resume *resume = begin(f);
    const struct result *rows = postgres_result(f->rows);

    for (int row = 0; row < result_rows(rows); row++)
        resume_add(resume, rows, row, strstr(with_events, result_text(rows, row, RESUME_CHANNEL)));
    resume_added(resume);
    return resume;
}

static void what_missed_nothing_is_left_out(void **state)
{
    struct fixture *f = *state;

    row_add(f, "C1", 0);
    row_add(f, "C2", 0);
    row_add(f, "C3", THREADS);
    row_add(f, "C4", LEFT);
    row_add(f, "C5", LEFT | THREADS);
    const struct resume *resume = begin_with(f, "C2 C4");
    assert_int_equal(resume->count, 3);
    assert_string_equal(resume->behind[0].channel_id, "C2");
    assert_int_equal(resume->behind[0].stage, BEHIND_EVENTS);
    assert_int_equal(resume->behind[0].seen_seq, HEAD_SEQ);
    assert_int_equal(resume->behind[0].to_seq, INT64_MAX);
    assert_int_equal(resume->behind[0].at_seq, -1);
    assert_string_equal(resume->behind[1].channel_id, "C3");
    assert_int_equal(resume->behind[1].stage, BEHIND_THREADS);
    assert_true(resume->behind[1].threads_due);
    assert_string_equal(resume->behind[2].channel_id, "C4");
    assert_int_equal(resume->behind[2].to_seq, MEMBER_SEQ); // up to the leave
    assert_false(resume->behind[2].is_member);
}

static void a_new_backlog_has_one_pass(void **state)
{
    struct fixture *f = *state;

    row_add(f, "C1", 0);
    const struct resume *resume = begin_with(f, "C1");
    assert_true(resume->is_last_pass);
    assert_int_equal(resume->pass_end, 1);
    assert_int_equal(f->place.progress.until.xid, NOW_XID);
    assert_int_equal(f->place.since.owner, position_owner("U1"));
}

static void a_backlog_goes_on_in_the_middle_of_a_channel(void **state)
{
    struct fixture *f = *state;

    f->place.progress = (struct progress){
        .until = {.xid = 50}, .channel_id = "C2", .part = PROGRESS_EVENTS, .number = 7};
    row_add(f, "C2", 0);
    row_add(f, "C3", 0);
    row_add(f, "C1", SECOND);
    const struct resume *resume = begin_with(f, "C1 C2 C3");
    assert_false(resume->is_last_pass);
    assert_int_equal(resume->count, 3);
    assert_int_equal(resume->pass_end, 2); // C1 was done; what it missed since comes after all
    assert_int_equal(resume->behind[0].earlier_seq, 7);
    assert_int_equal(resume->behind[1].earlier_seq, 0);
    assert_int_equal(f->place.progress.until.xid, 50); // the pass still ends there
}

static void a_backlog_goes_on_in_the_middle_of_threads(void **state)
{
    struct fixture *f = *state;

    f->place.progress = (struct progress){
        .until = {.xid = 50}, .channel_id = "C1", .part = PROGRESS_THREADS, .number = 44};
    row_add(f, "C2", 0);
    const struct resume *resume = begin_with(f, "C2");
    assert_int_equal(resume->count, 2);
    assert_string_equal(resume->behind[0].channel_id, "C1");
    assert_int_equal(resume->behind[0].stage, BEHIND_THREADS);
    assert_int_equal(resume->behind[0].thread_ts, 44);
    assert_int_equal(resume->behind[1].earlier_seq, 0);
}

static void a_call_reads_one_pass_up_to_its_snapshot(void **state)
{
    struct fixture *f = *state;

    f->ops.is_call = true;
    f->place.progress = (struct progress){.until = {.xid = 50}, .channel_id = "C2"};
    row_add(f, "C2", 0);
    row_add(f, "C1", SECOND);
    const struct resume *resume = begin_with(f, "C1 C2");
    assert_int_equal(resume->count, 1);
    assert_int_equal(resume->behind[0].to_seq, HEAD_SEQ);
}

static void after_the_first_pass_comes_the_second(void **state)
{
    struct fixture *f = *state;

    f->place.progress = (struct progress){.until = {.xid = 50}, .channel_id = "C2", .number = 7};
    row_add(f, "C1", SECOND);
    struct resume *resume = begin_with(f, "C1");
    assert_int_equal(resume->pass_end, 0);
    resume->created_sent = true;
    resume_advance(resume); // not ready: the second pass has begun, and waits
    assert_int_equal(f->overs, 0);
    assert_true(resume->is_last_pass);
    assert_int_equal(resume->pass_end, 1);
    assert_int_equal(f->place.since.xid, 50);
    assert_int_equal(f->place.since.owner, position_owner("U1"));
    assert_int_equal(f->place.progress.until.xid, NOW_XID);
    assert_string_equal(f->place.progress.channel_id, "");
    resume->created_sent = true;
    resume_advance(resume);
    assert_int_equal(f->overs, 1);
    assert_int_equal(f->place.since.xid, NOW_XID);
}

static void one_question_is_asked_at_a_time(void **state)
{
    struct fixture *f = *state;

    row_add(f, "C1", 0);
    struct resume *resume = begin_with(f, "C1");
    resume_advance(resume);
    assert_int_equal(f->gateway.asked, 0); // nobody is ready
    f->is_ready = true;
    resume_advance(resume);
    resume_advance(resume);
    assert_int_equal(f->gateway.asked, 1);
}

static void what_happens_meanwhile_is_read_with_the_rest(void **state)
{
    struct fixture *f = *state;
    struct event mark = {.kind = EVENT_MARK, .channel_id = "C1"};
    struct event thread = {.kind = EVENT_THREAD_MARK, .channel_id = "C1"};

    row_add(f, "C1", LEFT);
    row_add(f, "C2", 0);
    struct resume *resume = begin_with(f, "C1 C2");
    assert_true(resume_joined(resume, "C1")); // the user is back: all is read, not up to the leave
    assert_int_equal(resume->behind[0].to_seq, INT64_MAX);
    assert_false(resume_joined(resume, "C3"));
    assert_true(resume_awaits(resume, &mark));
    assert_true(resume->behind[0].state_due);
    assert_false(resume->behind[0].threads_due);
    assert_true(resume_awaits(resume, &thread));
    assert_true(resume->behind[0].threads_due);
    resume->behind[0].stage = BEHIND_STATE; // its events were sent: what happens now is sent, too
    assert_false(resume_awaits(resume, &mark));
    assert_false(resume_joined(resume, "C1"));
    assert_false(resume_joined(NULL, "C1"));
}

static void a_failed_answer_ends_it(void **state)
{
    struct fixture *f = *state;
    struct resume *resume = begin_with(f, "");

    resume_ask(resume);
    assert_true(resume_answer(resume, &(struct store_outcome){.r = 0}));
    resume_ask(resume);
    assert_false(resume_answer(resume, &(struct store_outcome){.r = -1}));
    assert_int_equal(f->fails, 1);
}

static void nobody_is_told_after_the_end(void **state)
{
    struct fixture *f = *state;
    struct resume *resume = begin_with(f, "");

    resume_ask(resume);
    resume_free(TAKE(f->resume)); // kept for its answer
    assert_false(resume_answer(resume, &(struct store_outcome){.r = -1}));
    assert_int_equal(f->fails, 0);
}

static void the_place_names_what_was_told_last(void **state)
{
    struct fixture *f = *state;
    struct place again;

    f->place.since = (struct position){.xid = 40, .received_xid = 40, .seconds = 1};
    row_add(f, "C1", 0);
    resume_progress_set(begin_with(f, ""), "C0000000007", PROGRESS_THREADS, 12);
    assert_int_equal(place_parse(f->place.text, strlen(f->place.text), &again), 0);
    assert_string_equal(again.progress.channel_id, "C0000000007");
    assert_int_equal(again.progress.part, PROGRESS_THREADS);
    assert_int_equal(again.progress.number, 12);
    assert_int_equal(again.progress.until.xid, NOW_XID);
}

// No era is known here, so none holds.
static void progress_of_a_lost_era_is_dropped(void **state)
{
    struct fixture *f = *state;
    CLEANUP_PARAMS struct params params = {0};

    f->place.progress = (struct progress){.until = {.xid = 50, .era = 2}, .channel_id = "C2"};
    resume_params(&f->gateway, &f->place, &params);
    assert_int_equal(f->place.progress.until.xid, 0);
    assert_string_equal(f->place.progress.channel_id, "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_missed_nothing_is_left_out),
        TEST(a_new_backlog_has_one_pass),
        TEST(a_backlog_goes_on_in_the_middle_of_a_channel),
        TEST(a_backlog_goes_on_in_the_middle_of_threads),
        TEST(a_call_reads_one_pass_up_to_its_snapshot),
        TEST(after_the_first_pass_comes_the_second),
        TEST(one_question_is_asked_at_a_time),
        TEST(what_happens_meanwhile_is_read_with_the_rest),
        TEST(a_failed_answer_ends_it),
        TEST(nobody_is_told_after_the_end),
        TEST(the_place_names_what_was_told_last),
        TEST(progress_of_a_lost_era_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
