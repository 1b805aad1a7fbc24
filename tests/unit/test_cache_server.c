// SPDX-License-Identifier: Apache-2.0
// The cache and the pipeline against a redis-server of the test's own, which is killed, stopped and
// emptied.
#include "base/error.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "cache/cache.h"
#include "cache/libraries.h"
#include "cache/pipeline.h"
#include "redis_program.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { TIMEOUT_MS = 2000, WAIT_SECONDS = 60, PENDING_MAX = 100, PENDING_BYTES = 100000 };

static const char library[] = "#!lua name=test_v1\n"
                              "redis.register_function('echo_v1', function(keys, args) "
                              "return args[1] end)";

static char directory[] = "/tmp/tidings-cache-XXXXXX";
static char socket_path[64];
static char url[80];
static pid_t server;

static struct loop *loop;
static struct cache *cache;
static pthread_t thread;
static sem_t resubscribed;
static sem_t received;
static char received_text[128];

static void server_start(void)
{
    server = fork();
    assert_true(server >= 0);
    if (server == 0) {
        (void)execlp(redis_program(), redis_program(), "--port", "0", "--unixsocket", socket_path,
                     "--save", "", "--dir", directory, "--loglevel", "warning", (char *)NULL);
        _exit(127);
    }
}

static void server_kill(void)
{
    kill(server, SIGKILL);
    assert_int_equal(waitpid(server, NULL, 0), server);
}

static struct cache_options options(void)
{
    return (struct cache_options){.redis_url = url,
                                  .library = library,
                                  .library_name = "test_v1",
                                  .timeout_ms = TIMEOUT_MS,
                                  .pending_max = PENDING_MAX,
                                  .pending_bytes = PENDING_BYTES};
}

static void sem_wait_bounded(sem_t *sem)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += WAIT_SECONDS;
    assert_int_equal(sem_timedwait(sem, &limit), 0);
}

// One command, run on the loop's thread while the test waits.
struct question {
    const char *texts[4];
    int count;
    int r;
    char text[64];
    sem_t answered;
};

static void on_answer(void *arg, int r, const struct cache_value *value)
{
    struct question *question = arg;
    question->r = r;
    (void)snprintf(question->text, sizeof question->text, "%s", cache_value_text(value));
    sem_post(&question->answered);
}

static void question_ask(void *arg)
{
    struct question *question = arg;
    cache_call(cache, question->count, question->texts, NULL, on_answer, question);
}

static int ask(struct question *question)
{
    while (question->count < 4 && question->texts[question->count])
        question->count++;
    sem_init(&question->answered, 0, 0);
    assert_int_equal(loop_post(loop, question_ask, question), 0);
    sem_wait_bounded(&question->answered);
    sem_destroy(&question->answered);
    return question->r;
}

static void wait_until_up(void)
{
    for (int tries = 0; tries < 2000; tries++) {
        struct question question = {.texts = {"PING"}};
        if (ask(&question) == 0)
            return;
        usleep(10000);
    }
    fail();
}

static void on_message(void *arg, const char *topic, const char *data, size_t length)
{
    (void)arg;
    (void)snprintf(received_text, sizeof received_text, "%s:%.*s", topic, (int)length, data);
    sem_post(&received);
}

static void on_resubscribed(void *arg)
{
    (void)arg;
    sem_post(&resubscribed);
}

static void topic_subscribe(void *arg)
{
    cache_subscribe(cache, arg);
}

static void *loop_main(void *arg)
{
    loop_run(arg);
    return NULL;
}

static int group_setup(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(directory));
    (void)snprintf(socket_path, sizeof socket_path, "%s/s", directory);
    (void)snprintf(url, sizeof url, "unix://%s", socket_path);
    server_start();
    sem_init(&received, 0, 0);
    sem_init(&resubscribed, 0, 0);
    assert_int_equal(loop_new(&loop), 0);
    struct cache_options o = options();
    assert_int_equal(cache_new(loop, &o, &cache), 0);
    cache_on_message(cache, on_message, NULL);
    cache_on_resubscribed(cache, on_resubscribed, NULL);
    return pthread_create(&thread, NULL, loop_main, loop);
}

static int group_teardown(void **state)
{
    (void)state;
    if (thread) { // else setting up has failed
        loop_stop(loop);
        pthread_join(thread, NULL);
        cache_free(cache);
        loop_free(loop);
    }
    server_kill();
    unlink(socket_path);
    return rmdir(directory);
}

static void test_commands_and_functions(void **state)
{
    (void)state;
    wait_until_up();
    struct question set = {.texts = {"SET", "k", "v"}};
    struct question get = {.texts = {"GET", "k"}};
    struct question wrong = {.texts = {"INCR", "k"}};
    struct question function = {.texts = {"FCALL", "echo", "0", "hello"}};
    assert_int_equal(ask(&set), 0);
    assert_int_equal(ask(&get), 0);
    assert_string_equal(get.text, "v");
    assert_int_equal(ask(&wrong), -ERROR_INTERNAL);
    assert_int_equal(ask(&function), 0);
    assert_string_equal(function.text, "hello");
}

enum { BURST_FRAME = sizeof "*2\r\n$4\r\nECHO\r\n$\r\n\r\n" - 1 };

// Commands of one turn: none of them is answered before all are asked.
static struct {
    int count;
    int length; // of each, on the wire
    int r[PENDING_MAX + 2];
    sem_t answered;
} burst;

static void on_burst_answer(void *arg, int r, const struct cache_value *value)
{
    (void)value;
    *(int *)arg = r;
    sem_post(&burst.answered);
}

static void burst_ask(void *arg)
{
    static char text[PENDING_BYTES];
    (void)arg;
    memset(text, 'x', sizeof text);
    for (int i = 0; i < burst.count; i++) {
        size_t digits = burst.length < 1000 + BURST_FRAME ? 3 : 5;
        const size_t lengths[] = {4, (size_t)burst.length - BURST_FRAME - digits};
        cache_call(cache, 2, (const char *[]){"ECHO", text}, lengths, on_burst_answer, &burst.r[i]);
    }
}

static void burst_run(int count, int length)
{
    burst.count = count;
    burst.length = length;
    sem_init(&burst.answered, 0, 0);
    assert_int_equal(loop_post(loop, burst_ask, NULL), 0);
    for (int i = 0; i < count; i++)
        sem_wait_bounded(&burst.answered);
    sem_destroy(&burst.answered);
}

// How many of `count` commands of `length` bytes each are taken; the rest must be refused.
static int burst_taken(int count, int length)
{
    int taken = 0;
    int64_t refused = metric_value(METRIC_CACHE_QUEUE_FULL);
    burst_run(count, length);
    while (taken < count && burst.r[taken] == 0)
        taken++;
    for (int i = taken; i < count; i++)
        assert_int_equal(burst.r[i], -ERROR_BUSY);
    assert_int_equal(metric_value(METRIC_CACHE_QUEUE_FULL), refused + count - taken);
    return taken;
}

static void test_commands_under_way_are_bounded(void **state)
{
    enum { SHORT = PENDING_BYTES / PENDING_MAX - 1, LONG = PENDING_BYTES / 2 };
    (void)state;
    wait_until_up();
    assert_int_equal(burst_taken(PENDING_MAX, SHORT), PENDING_MAX);
    assert_int_equal(burst_taken(PENDING_MAX + 2, SHORT), PENDING_MAX);
    assert_int_equal(burst_taken(3, LONG), 2);
    assert_int_equal(burst_taken(4, LONG - 1), 3); // there was room for two bytes
    assert_int_equal(burst_taken(2, LONG), 2);
}

static void test_flushed_library_comes_back(void **state)
{
    (void)state;
    wait_until_up();
    struct question flush = {.texts = {"FUNCTION", "FLUSH", "SYNC"}};
    struct question function = {.texts = {"FCALL", "echo", "0", "again"}};
    assert_int_equal(ask(&flush), 0);
    assert_int_equal(ask(&function), 0);
    assert_string_equal(function.text, "again");
}

static void expect_message(const char *topic, const char *data)
{
    char expected[128];
    struct question publish = {.texts = {"SPUBLISH", topic, data}};
    (void)snprintf(expected, sizeof expected, "%s:%s", topic, data);
    assert_int_equal(ask(&publish), 0);
    sem_wait_bounded(&received);
    assert_string_equal(received_text, expected);
}

static void test_topics_survive_a_restart(void **state)
{
    (void)state;
    wait_until_up();
    sem_wait_bounded(&resubscribed); // of the first connection
    server_kill();
    assert_int_equal(loop_post(loop, topic_subscribe, (void *)(uintptr_t)"one"), 0);
    assert_int_equal(loop_post(loop, topic_subscribe, (void *)(uintptr_t)"two"), 0);
    server_start();
    sem_wait_bounded(&resubscribed);
    wait_until_up();
    expect_message("one", "1");
    expect_message("two", "2");
}

static void test_killed_pubsub_connection(void **state)
{
    (void)state;
    wait_until_up();
    struct question kill = {.texts = {"CLIENT", "KILL", "TYPE", "pubsub"}};
    assert_int_equal(ask(&kill), 0);
    sem_wait_bounded(&resubscribed);
    expect_message("one", "after");
}

static int64_t asked;
static bool was_confirmed;

static void third_subscribe(void *arg)
{
    cache_subscribe(cache, "three");
    asked = cache_subscriptions(cache);
    was_confirmed = cache_has_confirmed(cache, asked);
    assert_int_equal(sem_post(arg), 0);
}

static void confirmation_look(void *arg)
{
    was_confirmed = cache_has_confirmed(cache, asked);
    assert_int_equal(sem_post(arg), 0);
}

static void test_subscriptions_are_confirmed(void **state)
{
    (void)state;
    sem_t done;
    sem_init(&done, 0, 0);
    assert_int_equal(loop_post(loop, third_subscribe, &done), 0);
    sem_wait_bounded(&done);
    assert_false(was_confirmed);
    for (int i = 0; i < 1000 * WAIT_SECONDS && !was_confirmed; i++) {
        usleep(1000);
        assert_int_equal(loop_post(loop, confirmation_look, &done), 0);
        sem_wait_bounded(&done);
    }
    assert_true(was_confirmed);
    expect_message("three", "3");
    sem_destroy(&done);
}

static void test_stopped_server(void **state)
{
    (void)state;
    wait_until_up();
    struct question get = {.texts = {"GET", "k"}};
    kill(server, SIGSTOP);
    assert_int_equal(ask(&get), -ERROR_UNAVAILABLE);
    kill(server, SIGCONT);
    wait_until_up();
}

static void test_pipeline(void **state)
{
    (void)state;
    struct pipeline *pipeline;
    struct cache_options o = options();
    wait_until_up();
    assert_int_equal(pipeline_new(&o, &pipeline), 0);
    struct question question = {.r = -1};
    sem_init(&question.answered, 0, 0);
    for (int i = 0; i < 3; i++)
        pipeline_add(pipeline, 4, (const char *[]){"FCALL", "echo", "0", "x"}, NULL);
    assert_int_equal(pipeline_run(pipeline, on_answer, &question), 0);
    assert_string_equal(question.text, "x");

    server_kill();
    pipeline_add(pipeline, 1, (const char *[]){"PING"}, NULL);
    assert_int_equal(pipeline_run(pipeline, NULL, NULL), -ERROR_UNAVAILABLE);
    server_start();
    wait_until_up();
    pipeline_add(pipeline, 4, (const char *[]){"FCALL", "echo", "0", "y"}, NULL);
    assert_int_equal(pipeline_run(pipeline, on_answer, &question), 0);
    assert_string_equal(question.text, "y");

    kill(server, SIGSTOP);
    pipeline_add(pipeline, 1, (const char *[]){"PING"}, NULL);
    assert_int_equal(pipeline_run(pipeline, on_answer, &question), -ERROR_UNAVAILABLE);
    kill(server, SIGCONT);
    pipeline_free(pipeline);
}

// Loads a library of another release, with a function of the same name.
static void library_load(struct pipeline *pipeline, const char *version)
{
    char source[256];
    (void)snprintf(source, sizeof source,
                   "#!lua name=test_%s\n"
                   "redis.register_function('echo_%s', function() return 'of %s' end)",
                   version, version, version);
    pipeline_add(pipeline, 3, (const char *[]){"FUNCTION", "LOAD", source}, NULL);
    assert_int_equal(pipeline_run(pipeline, NULL, NULL), 0);
}

static void on_count(void *arg, int r, const struct cache_value *value)
{
    (void)r;
    *(size_t *)arg = cache_value_count(value);
}

static size_t libraries_listed(struct pipeline *pipeline, const char *pattern)
{
    size_t count = 0;
    pipeline_add(pipeline, 4, (const char *[]){"FUNCTION", "LIST", "LIBRARYNAME", pattern}, NULL);
    assert_int_equal(pipeline_run(pipeline, on_count, &count), 0);
    return count;
}

static void expect_echo(struct pipeline *pipeline, const char *word)
{
    struct question question = {.r = -1};
    sem_init(&question.answered, 0, 0);
    pipeline_add(pipeline, 4, (const char *[]){"FCALL", "echo", "0", word}, NULL);
    assert_int_equal(pipeline_run(pipeline, on_answer, &question), 0);
    assert_string_equal(question.text, word);
    sem_destroy(&question.answered);
}

static void test_old_libraries_are_dropped(void **state)
{
    (void)state;
    struct pipeline *pipeline;
    struct cache_options o = options();
    wait_until_up();
    assert_int_equal(pipeline_new(&o, &pipeline), 0);
    library_load(pipeline, "v0");
    library_load(pipeline, "v2");
    library_load(pipeline, "v3");
    pipeline_add(
        pipeline, 3,
        (const char *[]){"FUNCTION", "LOAD",
                         "#!lua name=others\nredis.register_function('echo', function() end)"},
        NULL);
    assert_int_equal(pipeline_run(pipeline, NULL, NULL), 0);
    expect_echo(pipeline, "one's own, whatever else is loaded");

    assert_int_equal(libraries_drop(pipeline, (const char *[]){"test_v2", "test_v9"}, 2), 2);
    assert_int_equal(libraries_listed(pipeline, "test_v0"), 0);
    assert_int_equal(libraries_listed(pipeline, "test_v1"), 1);
    assert_int_equal(libraries_listed(pipeline, "test_v2"), 1);
    assert_int_equal(libraries_listed(pipeline, "test_v3"), 0);
    assert_int_equal(libraries_listed(pipeline, "others"), 1);
    assert_int_equal(libraries_drop(pipeline, NULL, 0), 1);
    assert_int_equal(libraries_drop(pipeline, NULL, 0), 0);
    expect_echo(pipeline, "still there");
    pipeline_free(pipeline);
}

// As when the instance that drops does not know of ours.
static void test_a_dropped_library_comes_back(void **state)
{
    (void)state;
    struct pipeline *ours, *other;
    struct cache_options o = options();
    struct cache_options later = {.redis_url = url,
                                  .library = "#!lua name=test_v2\n"
                                             "redis.register_function('echo_v2', function() end)",
                                  .library_name = "test_v2",
                                  .timeout_ms = TIMEOUT_MS};
    wait_until_up();
    assert_int_equal(pipeline_new(&o, &ours), 0);
    assert_int_equal(pipeline_new(&later, &other), 0);
    expect_echo(ours, "before");
    assert_int_equal(libraries_drop(other, NULL, 0), 1);
    pipeline_add(ours, 4, (const char *[]){"FCALL", "echo", "0", "missing"}, NULL);
    assert_int_equal(pipeline_run(ours, NULL, NULL), -ERROR_INTERNAL); // callers repeat it all
    expect_echo(ours, "after");

    assert_int_equal(libraries_drop(other, NULL, 0), 1);
    struct question function = {.texts = {"FCALL", "echo", "0", "on the loop"}};
    assert_int_equal(ask(&function), 0);
    assert_string_equal(function.text, "on the loop");
    assert_int_equal(libraries_drop(ours, NULL, 0), 1);
    pipeline_free(ours);
    pipeline_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands_and_functions),
        cmocka_unit_test(test_commands_under_way_are_bounded),
        cmocka_unit_test(test_flushed_library_comes_back),
        cmocka_unit_test(test_topics_survive_a_restart),
        cmocka_unit_test(test_killed_pubsub_connection),
        cmocka_unit_test(test_subscriptions_are_confirmed),
        cmocka_unit_test(test_stopped_server),
        cmocka_unit_test(test_pipeline),
        cmocka_unit_test(test_old_libraries_are_dropped),
        cmocka_unit_test(test_a_dropped_library_comes_back),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
