// SPDX-License-Identifier: Apache-2.0
// Outbox rows on their way from a real Postgres through the relay, the log within the process and
// the workers to a real Redis, which is killed on the way.
#include "base/clock.h"
#include "base/embedded.h"
#include "base/error.h"
#include "base/metrics.h"
#include "fanout/relay.h"
#include "fanout/worker.h"
#include "store/session.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "migrated_postgres.h"
#include "private_redis.h"
#include "wait_for.h"

enum { QUEUE_MAX = 100, ROWS_MAX = 1000 };

static const char channel[] = "C0000000001";

static struct session *session;
static struct relay *relay;
static struct workers *workers;
static struct pipeline *pipeline;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int loads;
static int loads_out_of_order;

static struct event *post(int64_t seq)
{
    struct event *event = event_new(EVENT_POST, strdup("{}"), 2);
    (void)snprintf(event->workspace_id, sizeof event->workspace_id, "T0000000001");
    (void)snprintf(event->channel_id, sizeof event->channel_id, "%s", channel);
    (void)snprintf(event->user_id, sizeof event->user_id, "U0000000001");
    event->seq = event->head.seq = event->head.ord = seq;
    return event;
}

// Rows are named for what they tell of: "seq-7" of the seventh event, "gone" of nothing any more;
// others are refused.
static int load(struct session *of, const char *outbox_id, struct event ***ret_events)
{
    assert_non_null(of);
    pthread_mutex_lock(&lock);
    loads++;
    loads_out_of_order += strtol(outbox_id + strcspn(outbox_id, "0123456789"), NULL, 10) != loads;
    pthread_mutex_unlock(&lock);
    if (strcmp(outbox_id, "gone") == 0)
        return 0;
    if (strncmp(outbox_id, "seq-", 4) != 0)
        return -ERROR_INTERNAL;
    *ret_events = malloc(sizeof **ret_events);
    **ret_events = post(strtol(outbox_id + 4, NULL, 10));
    return 1;
}

static struct cache_options cache_options(void)
{
    return (struct cache_options){.redis_url = redis.url,
                                  .library = embedded_redis_functions[0].data,
                                  .library_name = embedded_redis_functions[0].name,
                                  .timeout_ms = 1000};
}

static int64_t ask(const struct statement *statement, const char *text, int64_t number)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};
    params_text(&params, text);
    params_int(&params, number);
    assert_int_equal(session_call(session, statement, &params, &result), 0);
    return result_int(result, 0, 0);
}

static void outbox_insert(const char *id, int64_t age_seconds)
{
    static const struct statement statement = {
        "insert", "INSERT INTO outbox (id, created, channels, seqs, tss, kinds, users) "
                  "VALUES ($1, now() - make_interval(secs => $2), '{}', '{}', '{}', '{}', '{}')"};
    (void)ask(&statement, id, age_seconds);
}

// 0: gone, 1: there, 2: marked as done.
static int64_t outbox_state(const char *id)
{
    static const struct statement statement = {
        "state",
        "SELECT coalesce(max(1 + done::integer), 0)::bigint FROM outbox WHERE id = $1 AND $2 = 0"};
    return ask(&statement, id, 0);
}

static void on_number(void *arg, int r, const struct cache_value *value)
{
    *(int64_t *)arg = r < 0 || cache_value_is_null(value) ? -1 : cache_value_int(value);
}

static int64_t redis_ask(int count, const char *const *texts)
{
    int64_t number = -1;
    pipeline_add(pipeline, count, texts, NULL);
    return pipeline_run(pipeline, on_number, &number) < 0 ? -1 : number;
}

static int64_t head_seq(void)
{
    return redis_ask(3, (const char *[]){"HGET", "channel-latest:{C0000000001}", "seq"});
}

static void head_install(void)
{
    const char *texts[] = {
        "FCALL", "channel_install", "1", "channel-latest:{C0000000001}", "0", "0", "0", ""};
    assert_int_equal(redis_ask(8, texts), 1);
}

static int open_relay(void **state)
{
    (void)state;
    const struct relay_options options = {.database_url = postgres.url,
                                          .statement_timeout_ms = 2000,
                                          .leftover_age_ms = 3000,
                                          .leftover_poll_ms = 50,
                                          .queue_max = ROWS_MAX};
    struct log_options log_options = {
        .workers = 2, .queue_max = QUEUE_MAX, .queue_bytes = 1 << 20, .read_bytes = 1 << 20};
    const struct workers_options workers_options = {.cache = cache_options(),
                                                    .database_url = postgres.url,
                                                    .statement_timeout_ms = 2000,
                                                    .count = 2,
                                                    .thread_read_s = 60};
    loads = loads_out_of_order = 0;
    assert_int_equal(redis_launch(), 0);
    WAIT_FOR(redis_ask(1, (const char *[]){"DBSIZE"}) >= 0);
    head_install();
    assert_int_equal(relay_new(&options, &log_options, load, &relay), 0);
    assert_int_equal(workers_start(relay_log(relay), &workers_options, &workers), 0);
    assert_int_equal(relay_start(relay), 0);
    return 0;
}

static int close_relay(void **state)
{
    (void)state;
    relay_stop(relay, 2000);
    log_stop(relay_log(relay), 0);
    workers_stop(workers, 0);
    relay_free(relay);
    redis_kill();
    return session_script(session, "DELETE FROM outbox");
}

static void submit(const char *id, int64_t seq)
{
    struct event *event = post(seq);
    relay_submit(relay, id, &event, 1);
    event_unref(event);
}

static void a_row_with_bodies_goes_through_and_is_deleted(void **state)
{
    (void)state;
    outbox_insert("seq-1", 0);
    submit("seq-1", 1);
    WAIT_FOR(head_seq() == 1);
    WAIT_FOR(outbox_state("seq-1") == 0);
    assert_int_equal(loads, 0);
}

static void a_row_without_bodies_is_read_back_and_keeps_its_place(void **state)
{
    (void)state;
    char id[32];
    for (int i = 1; i <= 20; i++) {
        (void)snprintf(id, sizeof id, "seq-%d", i);
        outbox_insert(id, 0);
    }
    for (int i = 1; i <= 20; i++) {
        (void)snprintf(id, sizeof id, "seq-%d", i);
        if (i % 2 > 0)
            relay_submit(relay, id, NULL, 0);
        else
            submit(id, i);
    }
    // Out of order, one would have made the head unknown.
    WAIT_FOR(head_seq() == 20);
    WAIT_FOR(outbox_state("seq-19") == 0);
}

static void rows_for_later_let_others_go_first_and_keep_their_order(void **state)
{
    (void)state;
    char id[32];
    for (int i = 1; i <= 40; i++) {
        (void)snprintf(id, sizeof id, "seq-%d", i);
        outbox_insert(id, 0);
    }
    pthread_mutex_lock(&lock); // which the first load waits for
    for (int i = 1; i <= 20; i++) {
        (void)snprintf(id, sizeof id, "seq-%d", i);
        relay_submit(relay, id, NULL, 0);
        (void)snprintf(id, sizeof id, "seq-%d", 20 + i);
        relay_submit_later(relay, id);
    }
    pthread_mutex_unlock(&lock);
    WAIT_FOR(outbox_state("seq-40") == 0);
    assert_int_equal(loads, 40);
    assert_int_equal(loads_out_of_order, 0);
}

static void a_row_whose_effects_are_done_is_deleted(void **state)
{
    (void)state;
    outbox_insert("mark", 0);
    relay_forget(relay, "mark");
    outbox_insert("gone", 0);
    relay_submit(relay, "gone", NULL, 0);
    WAIT_FOR(outbox_state("mark") == 0);
    WAIT_FOR(outbox_state("gone") == 0);
}

static void what_somebody_left_behind_is_brought_on_and_marked(void **state)
{
    (void)state;
    outbox_insert("seq-1", 60);
    outbox_insert("seq-2", 0);
    WAIT_FOR(outbox_state("seq-1") == 2);
    assert_int_equal(head_seq(), 1);
    assert_int_equal(outbox_state("seq-2"), 1);
    assert_int_equal(loads, 1);
}

static void what_is_refused_again_and_again_is_given_up(void **state)
{
    (void)state;
    outbox_insert("nonsense", 60);
    outbox_insert("seq-1", 50);
    WAIT_FOR(outbox_state("nonsense") == 2);
    WAIT_FOR(head_seq() == 1);
    assert_int_equal(loads, 4);
}

static void while_redis_is_away_rows_stay_and_then_go_on(void **state)
{
    (void)state;
    char id[32];
    redis_kill();
    for (int i = 1; i <= 2 * QUEUE_MAX; i++) {
        (void)snprintf(id, sizeof id, "seq-%d", i);
        outbox_insert(id, 60);
        submit(id, i);
    }
    assert_int_equal(outbox_state("seq-1"), 1);
    assert_int_equal(redis_launch(), 0);
    for (int i = 1; i <= 2 * QUEUE_MAX; i++) {
        (void)snprintf(id, sizeof id, "seq-%d", i);
        WAIT_FOR(outbox_state(id) != 1);
    }
}

static void while_postgres_is_away_done_rows_wait_to_be_deleted(void **state)
{
    (void)state;
    outbox_insert("seq-1", 60);
    outbox_insert("seq-2", 0);
    assert_int_equal(postgres_do("kill"), 0);
    submit("seq-1", 1);
    relay_submit(relay, "seq-2", NULL, 0);
    WAIT_FOR(head_seq() >= 1);
    assert_int_equal(postgres_do("start"), 0);
    WAIT_FOR(session_script(session, "SELECT 1") == 0);
    WAIT_FOR(outbox_state("seq-1") != 1);
    WAIT_FOR(outbox_state("seq-2") != 1);
}

static void no_more_rows_are_in_memory_than_may_be(void **state)
{
    (void)state;
    char id[32];
    int64_t refused = metric_value(METRIC_OUTBOX_QUEUE_FULL);
    assert_int_equal(postgres_do("kill"), 0); // what is done stays until it is deleted there
    for (int i = 1; i < ROWS_MAX; i++) {
        (void)snprintf(id, sizeof id, "mark-%d", i);
        relay_forget(relay, id);
    }
    submit("seq-1", 1);
    assert_int_equal(metric_value(METRIC_OUTBOX_QUEUE_FULL), refused);
    submit("seq-2", 2);
    assert_int_equal(metric_value(METRIC_OUTBOX_QUEUE_FULL), refused + 1);
    assert_int_equal(postgres_do("start"), 0);
    WAIT_FOR(session_script(session, "SELECT 1") == 0);
    WAIT_FOR(head_seq() == 1);
}

static int start(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN); // as the program does
    if (postgres_launch() < 0 || redis_prepare() < 0 || postgres_migrate() < 0 ||
        session_new(postgres.url, 2000, &session) < 0)
        return -1;
    const struct cache_options options = cache_options();
    return pipeline_new(&options, &pipeline);
}

static int stop(void **state)
{
    (void)state;
    pipeline_free(pipeline);
    session_free(session);
    redis_forget();
    return postgres_end();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_relay, close_relay)
    const struct CMUnitTest tests[] = {
        TEST(a_row_with_bodies_goes_through_and_is_deleted),
        TEST(a_row_without_bodies_is_read_back_and_keeps_its_place),
        TEST(rows_for_later_let_others_go_first_and_keep_their_order),
        TEST(a_row_whose_effects_are_done_is_deleted),
        TEST(what_somebody_left_behind_is_brought_on_and_marked),
        TEST(what_is_refused_again_and_again_is_given_up),
        TEST(while_redis_is_away_rows_stay_and_then_go_on),
        TEST(while_postgres_is_away_done_rows_wait_to_be_deleted),
        TEST(no_more_rows_are_in_memory_than_may_be),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
