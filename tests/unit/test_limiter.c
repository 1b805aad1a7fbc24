// SPDX-License-Identifier: Apache-2.0
// Buckets of calls: alone, shared by two loops through a Redis, without it, and more than are kept.
#include "../../src/api/limiter.h"
#include "../../src/api/limits.h"
#include "../../src/api/methods.h"

#include "base/clock.h"
#include "base/embedded.h"
#include "base/metrics.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "private_redis.h"

enum { SETTLE_MS = 10, BUCKETS_MAX = 16, IDLE_MS = 50, LIMIT = 64, WAIT_TURNS = 2000 };

// One loop with a limiter, as one instance has.
struct side {
    struct loop *loop;
    struct cache *cache;
    struct limiter *limiter;
    pthread_t thread;
};

static struct side here, there, alone;

// What is asked of a limiter on its loop's thread.
struct question {
    struct side *side;
    const char *subject;
    int64_t per_minute;
    int64_t units; // of each call
    int most;      // calls to take, at most, until one is refused
    int admitted;  // answers
    int64_t wait_s;
    bool is_up;
    sem_t answered;
};

static void question_answer(void *arg)
{
    struct question *question = arg;

    question->is_up = question->side->cache && cache_is_up(question->side->cache);
    for (; question->admitted < question->most; question->admitted++) {
        question->wait_s = limiter_take_many(question->side->limiter, question->subject,
                                             "auth.test", question->per_minute, question->units);
        if (question->wait_s != 0)
            break;
    }
    sem_post(&question->answered);
}

static struct question ask_units(struct side *side, const char *subject, int64_t per_minute,
                                 int64_t units, int most)
{
    struct question question = {
        .side = side, .subject = subject, .per_minute = per_minute, .units = units, .most = most};

    sem_init(&question.answered, 0, 0);
    assert_int_equal(loop_post(side->loop, question_answer, &question), 0);
    while (sem_wait(&question.answered) != 0)
        continue;
    sem_destroy(&question.answered);
    return question;
}

static struct question ask(struct side *side, const char *subject, int64_t per_minute, int most)
{
    return ask_units(side, subject, per_minute, 1, most);
}

static void pause_ms(long ms)
{
    (void)nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void wait_for_redis(struct side *side, bool up)
{
    for (int i = 0; i < WAIT_TURNS; i++) {
        if (ask(side, "none", 1, 0).is_up == up)
            return;
        pause_ms(5);
    }
    fail();
}

static void *side_run(void *arg)
{
    loop_run(arg);
    return NULL;
}

static int side_start(struct side *side, bool with_redis)
{
    const struct limiter_options options = {
        .settle_ms = SETTLE_MS, .idle_ms = IDLE_MS, .buckets_max = BUCKETS_MAX};
    const struct cache_options cache_options = {.redis_url = redis.url,
                                                .library = embedded_redis_functions[0].data,
                                                .library_name = embedded_redis_functions[0].name,
                                                .timeout_ms = 5000,
                                                .pending_max = 1000,
                                                .pending_bytes = 1 << 20};

    if (loop_new(&side->loop) < 0)
        return -1;
    if (with_redis && cache_new(side->loop, &cache_options, &side->cache) < 0)
        return -1;
    if (limiter_new(side->loop, side->cache, &options, &side->limiter) < 0)
        return -1;
    return pthread_create(&side->thread, NULL, side_run, side->loop);
}

static void side_stop(struct side *side)
{
    if (!side->thread) // it did not start
        return;
    loop_stop(side->loop);
    pthread_join(side->thread, NULL);
    cache_free(side->cache);
    limiter_free(side->limiter);
    loop_free(side->loop);
}

static int start(void **state)
{
    (void)state;
    if (redis_prepare() < 0 || redis_launch() < 0)
        return -1;
    if (side_start(&here, true) != 0 || side_start(&there, true) != 0)
        return -1;
    if (side_start(&alone, false) != 0)
        return -1;
    wait_for_redis(&here, true);
    wait_for_redis(&there, true);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    side_stop(&here);
    side_stop(&there);
    side_stop(&alone);
    redis_kill();
    redis_forget();
    return 0;
}

static void a_bucket_holds_so_many_and_says_when_there_is_one_more(void **state)
{
    (void)state;
    struct question question = ask(&alone, "T1", LIMIT, 1000);
    assert_int_equal(question.admitted, LIMIT);
    assert_int_equal(question.wait_s, 1);
    question = ask(&alone, "T2", 1, 1000); // each subject has its own
    assert_int_equal(question.admitted, 1);
    assert_int_equal(question.wait_s, 60);
    question = ask(&alone, "T2", 4, 1000); // a limit that is raised holds at once
    assert_int_equal(question.admitted, 0);
    assert_in_range(question.wait_s, 10, 15);
    assert_int_equal(ask(&alone, "T3", 1000000000, 1000).admitted, 1000);
}

// As bytes do, which come as they come: what is one too many is missing later.
static void units_are_taken_whole_while_there_is_room_for_one(void **state)
{
    (void)state;
    assert_int_equal(ask_units(&alone, "B1", 4, 3, 1).admitted, 1);
    assert_int_equal(ask_units(&alone, "B1", 4, 0, 1).admitted, 1); // asks whether there is room
    assert_int_equal(ask_units(&alone, "B1", 4, 1, 1).admitted, 1);
    assert_in_range(ask_units(&alone, "B1", 4, 0, 1).wait_s, 1, 15);
    assert_int_equal(ask_units(&alone, "B2", 4, 4, 1).admitted, 1);
    assert_in_range(ask_units(&alone, "B2", 4, 0, 1).wait_s, 1, 15);
    assert_int_equal(ask_units(&alone, "B3", 4, 5, 1).admitted, 1);
    assert_in_range(ask_units(&alone, "B3", 4, 0, 1).wait_s, 16, 30);
}

static void a_bucket_fills_up(void **state)
{
    (void)state;
    int turns = 0;

    struct question question = ask(&alone, "T4", 60, 5000); // one each second
    assert_int_equal(question.admitted, 60);
    assert_int_equal(question.wait_s, 1);
    while (ask(&alone, "T4", 60, 1).admitted == 0 && turns++ < WAIT_TURNS)
        pause_ms(5);
    assert_in_range(turns, 0, WAIT_TURNS - 1);
}

// There are as many as were used lately: for each that comes two go that have been full for long.
static void idle_buckets_go(void **state)
{
    (void)state;
    char subject[24];
    int64_t before = metric_value(METRIC_RATE_BUCKETS);
    int64_t dropped = metric_value(METRIC_RATE_BUCKETS_DROPPED);

    for (int i = 0; i < BUCKETS_MAX; i++) {
        (void)snprintf(subject, sizeof subject, "I%d", i);
        (void)ask(&alone, subject, 60000, 1);
    }
    assert_int_equal(metric_value(METRIC_RATE_BUCKETS), before + BUCKETS_MAX);
    pause_ms(2 * IDLE_MS);
    for (int i = 0; i < BUCKETS_MAX / 2; i++) {
        (void)snprintf(subject, sizeof subject, "J%d", i);
        (void)ask(&alone, subject, 60000, 1);
    }
    assert_in_range(metric_value(METRIC_RATE_BUCKETS), before, before + BUCKETS_MAX / 2);
    assert_int_equal(metric_value(METRIC_RATE_BUCKETS_DROPPED), dropped);
}

// Only what was not used for longest is forgotten.
static void buckets_are_bounded(void **state)
{
    (void)state;
    char subject[24];
    int64_t before = metric_value(METRIC_RATE_BUCKETS_DROPPED);

    (void)ask(&alone, "T5", 1, 1);
    (void)ask(&alone, "T6", 1, 1);
    for (int i = 0; i < BUCKETS_MAX - 1; i++) {
        (void)snprintf(subject, sizeof subject, "X%d", i);
        (void)ask(&alone, subject, 1, 1);
        assert_int_equal(ask(&alone, "T5", 1, 1).admitted, 0);
    }
    assert_true(metric_value(METRIC_RATE_BUCKETS_DROPPED) > before);
    assert_int_equal(ask(&alone, "T6", 1, 1).admitted, 1);
}

// How many calls are let through until one is refused, with so long between them.
static int take_all(struct side *side, const char *subject, long every_ms)
{
    for (int count = 0; count < WAIT_TURNS; count++) {
        if (ask(side, subject, LIMIT, 1).admitted == 0)
            return count;
        pause_ms(every_ms);
    }
    fail();
    return 0;
}

// `held` calls are let through, and what the time since then has brought. Returns when that was.
static int64_t assert_takes_all(struct side *side, const char *subject, int held, int64_t since_ms)
{
    int count = take_all(side, subject, 0);
    int64_t now_ms = clock_monotonic_ms();

    assert_in_range(count, held, held + 2 + (now_ms - since_ms) * LIMIT / 60000);
    return now_ms;
}

static int64_t assert_takes_whole(struct side *side, const char *subject)
{
    return assert_takes_all(side, subject, LIMIT, clock_monotonic_ms());
}

// What another let through was heard of before as much was let through again.
static void assert_is_known(struct side *side, const char *subject)
{
    assert_in_range(take_all(side, subject, 10 * SETTLE_MS), 1, LIMIT / 2);
}

static void two_loops_share(void **state)
{
    (void)state;
    (void)assert_takes_whole(&here, "T7");
    assert_is_known(&there, "T7");
}

static void what_is_forgotten_here_is_known_there(void **state)
{
    (void)state;
    char subject[24];

    (void)assert_takes_whole(&here, "T8");
    for (int i = 0; i < BUCKETS_MAX; i++) {
        (void)snprintf(subject, sizeof subject, "Y%d", i);
        (void)ask(&here, subject, LIMIT, 2); // the last of it is told when it goes
    }
    assert_is_known(&here, "T8");
}

static void wiped_or_away_redis_sets_nobody_free(void **state)
{
    (void)state;
    int64_t since_ms = assert_takes_whole(&here, "T9");
    redis_kill();
    wait_for_redis(&here, false);
    since_ms = assert_takes_all(&here, "T9", 0, since_ms);
    (void)assert_takes_whole(&here, "T10");
    assert_int_equal(redis_launch(), 0); // with nothing in it
    wait_for_redis(&here, true);
    wait_for_redis(&there, true);
    since_ms = assert_takes_all(&here, "T9", 0, since_ms);
    for (int i = 0; i < WAIT_TURNS && ask(&here, "T9", LIMIT, 1).admitted == 0; i++)
        pause_ms(5);
    pause_ms(10 * SETTLE_MS); // Redis was told of that one, and answers by it alone
    (void)assert_takes_all(&here, "T9", 0, since_ms);
    (void)assert_takes_whole(&there, "T11");
    assert_is_known(&here, "T11");
}

static void limits_of_methods_are_read(void **state)
{
    (void)state;
    static const char *const wrong[] = {"x",           "auth.test",    "auth.test=",
                                        "auth.test=x", "auth.test=-1", "auth.test=1000000001",
                                        "no.such=1",   "=1",           ",auth.test=1"};
    struct limits limits;

    assert_int_equal(limits_read("chat.postMessage=600,conversations.info=0", 7, &limits), 0);
    assert_int_equal(limits.methods[method_number(method_find("chat.postMessage"))], 600);
    assert_int_equal(limits.methods[method_number(method_find("channels.info"))], 0);
    assert_int_equal(limits.methods[method_number(method_find("auth.test"))], 7);
    assert_int_equal(limits_read("", 7, &limits), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(limits_read(wrong[i], 7, &limits), -ERROR_INVALID_ARGUMENTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_buckets_go),
        cmocka_unit_test(a_bucket_holds_so_many_and_says_when_there_is_one_more),
        cmocka_unit_test(units_are_taken_whole_while_there_is_room_for_one),
        cmocka_unit_test(a_bucket_fills_up),
        cmocka_unit_test(buckets_are_bounded),
        cmocka_unit_test(two_loops_share),
        cmocka_unit_test(what_is_forgotten_here_is_known_there),
        cmocka_unit_test(wiped_or_away_redis_sets_nobody_free),
        cmocka_unit_test(limits_of_methods_are_read),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
