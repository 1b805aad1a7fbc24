// SPDX-License-Identifier: Apache-2.0
// A blocking connection to Redis for threads: queues commands, sends them together and reads all
// replies.
#include "cache/pipeline.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "command.h"
#include "redis_finder.h"
#include "redis_link.h"
#include "redis_reply.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMANDS_MAX = 256 << 20, READ_SIZE = 16384, PROBLEM_SIZE = 160 };

struct pipeline {
    struct cache_options options;
    struct url url;
    struct url server;  // that is connected to
    const char *suffix; // of function names; points into options.library_name
    redisReader *reader;
    struct buffer commands; // queued, not yet run
    size_t count;           // of commands
    size_t sent;            // bytes of `commands` sent before pipeline_run()
    struct link *link;      // NULL if not connected
    unsigned tries;
    int64_t logged_ms;          // when its loss was last logged
    char problem[PROBLEM_SIZE]; // why it failed last
};

static void pipeline_close(struct pipeline *p)
{
    link_free(TAKE(p->link));
    if (p->reader)
        redisReaderFree(TAKE(p->reader));
    p->sent = 0;
}

static int pipeline_fail(struct pipeline *p, const char *reason)
{
    if (log_is_due(&p->logged_ms))
        log_write(LOG_WARN, "cache", "Redis (worker) is down: %s", reason);
    metric_add(METRIC_CACHE_LOST, 1);
    pipeline_close(p);
    return -ERROR_UNAVAILABLE;
}

// Waits until the socket is ready for one of `events` or `deadline_ms` has come.
static int socket_wait(const struct pipeline *p, short events, int64_t deadline_ms)
{
    struct pollfd ready = {.fd = link_fd(p->link), .events = events};
    for (;;) {
        int64_t left_ms = deadline_ms - clock_monotonic_ms();
        int r = poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0);
        if (r > 0)
            return ready.revents;
        if (r == 0 || errno != EINTR)
            return -ERROR_UNAVAILABLE;
    }
}

static int problem_keep(struct pipeline *p, const char *reason)
{
    snprintf(p->problem, sizeof p->problem, "%s", reason);
    return -ERROR_UNAVAILABLE;
}

static int socket_connect(struct pipeline *p, int64_t deadline_ms)
{
    struct address addresses[ADDRESSES_MAX];
    struct finder *finder;
    unsigned number = p->tries++; // a Sentinel that says nothing takes all the time of a try
    if (finder_new(&p->url, number, &finder) < 0)
        return problem_keep(p, "cannot look up the host");
    int count = finder_wait(finder, deadline_ms - clock_monotonic_ms(), addresses);
    if (count <= 0)
        (void)problem_keep(p, finder_problem(finder));
    p->server = *finder_server(finder);
    finder_free(finder);
    if (count <= 0)
        return -ERROR_UNAVAILABLE;
    int fd = address_connect(&addresses[number % (unsigned)count]);
    if (fd < 0)
        return problem_keep(p, "cannot connect");
    p->link = link_new(fd, &p->server);
    return 0;
}

static int link_establish(struct pipeline *p, int64_t deadline_ms)
{
    int r;
    do {
        if (socket_wait(p, link_events(p->link), deadline_ms) < 0)
            return problem_keep(p, "connecting took too long");
        r = link_open(p->link);
    } while (r == 0);
    if (r < 0)
        return problem_keep(p, link_problem(p->link));
    p->reader = redisReaderCreate();
    return p->reader ? 0 : problem_keep(p, "no memory");
}

// Writes what the socket accepts now.
static int socket_send(struct pipeline *p, size_t *sent)
{
    ssize_t length = link_write(p->link, p->commands.data + *sent, p->commands.length - *sent);
    if (length < 0)
        return problem_keep(p, link_problem(p->link));
    *sent += (size_t)length;
    return 0;
}

static int socket_receive(struct pipeline *p)
{
    char data[READ_SIZE];
    ssize_t length = link_read(p->link, data, sizeof data);
    if (length < 0)
        return problem_keep(p, link_problem(p->link));
    if (redisReaderFeed(p->reader, data, (size_t)length) != REDIS_OK)
        return problem_keep(p, "no memory");
    return 0;
}

struct answers {
    cache_fn *fn;
    void *arg;
    size_t left;
    int r;                    // -ERROR_INTERNAL after the first error reply
    bool stale;               // the library is missing, or the server has become a replica
    struct pipeline *greeted; // of a greeting: keeps the error, which is told once
};

static void answer(struct answers *answers, const redisReply *reply)
{
    bool failed = reply->type == REDIS_REPLY_ERROR;
    answers->left--;
    if (failed && answers->greeted)
        (void)problem_keep(answers->greeted, reply->str);
    else if (failed && answers->r == 0)
        log_write(LOG_WARN, "cache", "Redis refused a command: %s", reply->str);
    if (failed)
        answers->r = -ERROR_INTERNAL;
    if (reply_is_unknown_function(reply) || reply_is_of_replica(reply))
        answers->stale = true;
    if (answers->fn)
        answers->fn(answers->arg, failed ? -ERROR_INTERNAL : 0, reply_value(reply));
}

// Delivers all complete replies received. Returns 1 if there were any.
static int answer_received(struct pipeline *p, struct answers *answers)
{
    size_t before = answers->left;
    while (answers->left > 0) {
        void *reply = NULL;
        if (redisReaderGetReply(p->reader, &reply) != REDIS_OK)
            return problem_keep(p, "protocol error");
        if (!reply)
            break;
        answer(answers, reply);
        freeReplyObject(reply);
    }
    return before != answers->left;
}

// Sends and receives concurrently: a server whose replies are not read stops reading commands. Each
// reply extends the deadline.
static int pipeline_exchange(struct pipeline *p, struct answers *answers)
{
    int64_t deadline_ms = clock_monotonic_ms() + p->options.timeout_ms;
    size_t sent = p->sent;
    p->sent = 0;
    (void)problem_keep(p, "no answer");
    while (answers->left > 0) {
        short wanted = sent < p->commands.length ? POLLIN | POLLOUT : POLLIN;
        int events = socket_wait(p, wanted, deadline_ms);
        if (events < 0) {
            metric_add(METRIC_CACHE_TIMEOUTS, 1);
            return events;
        }
        int r = 0;
        if (events & POLLOUT)
            r = socket_send(p, &sent);
        if (r >= 0 && (events & ~POLLOUT))
            r = socket_receive(p);
        if (r >= 0)
            r = answer_received(p, answers);
        if (r < 0)
            return r;
        if (r > 0)
            deadline_ms = clock_monotonic_ms() + p->options.timeout_ms;
    }
    return 0;
}

// Runs one command of the greeting on its own, with the queued commands set aside.
static int greet_call(struct pipeline *p, int count, const char *const *texts, cache_fn *fn,
                      void *arg)
{
    struct buffer added = p->commands;
    struct answers answers = {.fn = fn, .arg = arg, .left = 1, .greeted = p};
    buffer_init(&p->commands, COMMANDS_MAX);
    command_append(&p->commands, p->suffix, count, texts, NULL);
    int r = buffer_failed(&p->commands) ? -ERROR_MEMORY : pipeline_exchange(p, &answers);
    buffer_done(&p->commands);
    p->commands = added;
    return r < 0 ? r : answers.r;
}

struct listed {
    uint32_t tag;
    const struct cache_options *options;
    bool found;
};

static void on_listed(void *arg, int r, const struct cache_value *value)
{
    struct listed *listed = CAST(listed, arg);
    listed->found = r == 0 && reply_has_library(value, listed->options);
}

static int greet_library(struct pipeline *p)
{
    struct listed listed = {.tag = TAG(listed), .options = &p->options};
    const char *list[] = {"FUNCTION", "LIST", "LIBRARYNAME", p->options.library_name, "WITHCODE"};
    const char *load[] = {"FUNCTION", "LOAD", "REPLACE", p->options.library};
    int r = greet_call(p, 5, list, on_listed, &listed);
    if (r < 0 || listed.found)
        return r;
    return greet_call(p, 4, load, NULL, NULL);
}

static int pipeline_connect(struct pipeline *p)
{
    int64_t deadline_ms = clock_monotonic_ms() + p->options.timeout_ms;
    int r = socket_connect(p, deadline_ms);
    if (r >= 0)
        r = link_establish(p, deadline_ms);
    if (r >= 0)
        r = greet_library(p);
    if (r < 0)
        return pipeline_fail(p, p->problem);
    metric_add(METRIC_CACHE_CONNECTS, 1);
    p->logged_ms = 0;
    return 0;
}

int pipeline_new(const struct cache_options *options, struct pipeline **ret_pipeline)
{
    CLEANUP_FREE struct pipeline *p = memory_must_new(sizeof *p);
    int r = url_parse(options->redis_url, &p->url);
    if (r < 0)
        return r;
    p->options = *options;
    p->suffix = command_library_suffix(options->library_name);
    buffer_init(&p->commands, COMMANDS_MAX);
    *ret_pipeline = TAKE(p);
    return 0;
}

void pipeline_free(struct pipeline *p)
{
    if (!p)
        return;
    pipeline_close(p);
    buffer_done(&p->commands);
    free(p);
}

const char *pipeline_library_name(const struct pipeline *p)
{
    return p->options.library_name;
}

void pipeline_add(struct pipeline *p, int count, const char *const *texts, const size_t *lengths)
{
    ASSERT(count > 0 && texts);
    command_append(&p->commands, p->suffix, count, texts, lengths);
    p->count++;
}

void pipeline_push(struct pipeline *p)
{
    // pipeline_run() detects a lost connection.
    if (p->link && !buffer_failed(&p->commands))
        (void)!socket_send(p, &p->sent);
}

static int pipeline_attempt(struct pipeline *p, struct answers *answers)
{
    if (buffer_failed(&p->commands)) {
        pipeline_close(p); // some commands may have been sent, and would be answered
        return -ERROR_UNAVAILABLE;
    }
    int r = p->link ? 0 : pipeline_connect(p);
    if (r < 0)
        return r;
    r = pipeline_exchange(p, answers);
    if (r < 0)
        return pipeline_fail(p, p->problem);
    // The next run reconnects, and thereby loads the library and finds the master.
    if (answers->stale)
        pipeline_close(p);
    return answers->r;
}

int pipeline_run(struct pipeline *p, cache_fn *fn, void *arg)
{
    struct answers answers = {.fn = fn, .arg = arg, .left = p->count};
    int r = p->count > 0 ? pipeline_attempt(p, &answers) : 0;
    for (; answers.left > 0; answers.left--)
        if (fn)
            fn(arg, -ERROR_UNAVAILABLE, NULL);
    buffer_clear(&p->commands);
    p->count = 0;
    p->sent = 0;
    return r;
}
