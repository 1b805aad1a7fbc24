// SPDX-License-Identifier: Apache-2.0
// One non-blocking connection to Redis: connects, reads, writes, and reconnects with growing
// pauses.
#include "wire.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/metrics.h"
#include "redis_finder.h"
#include "redis_link.h"

#include <stdlib.h>
#include <sys/epoll.h>

enum {
    PAUSE_FIRST_MS = 50,
    PAUSE_LAST_MS = 1000,
    PAUSE_LAST_FAILOVER_MS = 500, // Sentinel may name another server by then
    LOOKUP_POLL_MS = 5,
    READ_SIZE = 16384,
    READS_A_TURN = 16,
};

enum wire_state { WIRE_PAUSED, WIRE_LOOKING_UP, WIRE_CONNECTING, WIRE_OPEN };

struct wire {
    uint32_t tag;
    struct loop *loop;
    const struct wire_handlers *handlers;
    void *arg;
    struct url url;
    struct url server;     // that is connected to: `url`, or what its Sentinels answered
    struct finder *finder; // while LOOKING_UP
    struct loop_timer *timer;
    struct loop_io *watch;
    redisReader *reader;
    struct buffer out;
    size_t sent; // bytes of `out` already sent
    enum wire_state state;
    struct link *link; // while CONNECTING and OPEN
    unsigned tries;
    int64_t pause_ms;
    int64_t connect_timeout_ms;
    int64_t received_ms;
    int64_t logged_ms; // when its loss was last logged
};

static void wire_close(struct wire *wire)
{
    loop_io_free(TAKE(wire->watch));
    link_free(TAKE(wire->link));
    if (wire->reader)
        redisReaderFree(TAKE(wire->reader));
    finder_free(TAKE(wire->finder));
    buffer_done(&wire->out);
    wire->sent = 0;
}

static int64_t pause_next(struct wire *wire)
{
    uint16_t random;
    random_fill(&random, sizeof random);
    int64_t pause_ms = wire->pause_ms / 2 + random % (wire->pause_ms / 2 + 1);
    int64_t last_ms = wire->url.master[0] ? PAUSE_LAST_FAILOVER_MS : PAUSE_LAST_MS;
    wire->pause_ms *= 2;
    if (wire->pause_ms > last_ms)
        wire->pause_ms = last_ms;
    return pause_ms;
}

void wire_drop(struct wire *wire, const char *reason)
{
    if (wire->state == WIRE_PAUSED)
        return;
    bool was_open = wire->state == WIRE_OPEN;
    if (log_is_due(&wire->logged_ms))
        log_write(LOG_WARN, "cache", "Redis (%s) is down: %s", wire->handlers->name, reason);
    wire_close(wire);
    wire->state = WIRE_PAUSED;
    loop_timer_set(wire->timer, pause_next(wire));
    if (!was_open)
        return;
    metric_add(METRIC_CACHE_LOST, 1);
    wire->handlers->on_lost(wire->arg);
}

static void wire_opened(struct wire *wire)
{
    wire->reader = redisReaderCreate();
    if (!wire->reader) {
        wire_drop(wire, "no memory");
        return;
    }
    loop_timer_clear(wire->timer);
    loop_io_set(wire->watch, EPOLLIN);
    wire->state = WIRE_OPEN;
    wire->received_ms = loop_now_ms(wire->loop);
    wire->handlers->on_open(wire->arg);
}

static void wire_open(struct wire *wire)
{
    int r = link_open(wire->link);
    if (r < 0)
        wire_drop(wire, link_problem(wire->link));
    else if (r == 0)
        loop_io_set(wire->watch, (uint32_t)link_events(wire->link));
    else
        wire_opened(wire);
}

// Delivers all complete replies; stops if a handler drops the connection.
static void wire_parse(struct wire *wire)
{
    while (wire->state == WIRE_OPEN) {
        void *reply = NULL;
        if (redisReaderGetReply(wire->reader, &reply) != REDIS_OK) {
            wire_drop(wire, "protocol error");
            return;
        }
        if (!reply)
            return;
        wire->handlers->on_reply(wire->arg, reply);
        freeReplyObject(reply);
    }
}

static void wire_read(struct wire *wire)
{
    char data[READ_SIZE];
    for (int i = 0; i < READS_A_TURN && wire->state == WIRE_OPEN; i++) {
        ssize_t length = link_read(wire->link, data, sizeof data);
        if (length == 0)
            return;
        if (length < 0) {
            wire_drop(wire, link_problem(wire->link));
            return;
        }
        wire->received_ms = loop_now_ms(wire->loop);
        if (redisReaderFeed(wire->reader, data, (size_t)length) != REDIS_OK) {
            wire_drop(wire, "no memory");
            return;
        }
        wire_parse(wire);
        if (length < READ_SIZE)
            return;
    }
}

static void wire_on_ready(void *arg, uint32_t events)
{
    struct wire *wire = CAST(wire, arg);
    if (wire->state == WIRE_CONNECTING) {
        wire_open(wire);
        return;
    }
    if (events & EPOLLOUT)
        wire_flush(wire);
    if (wire->state == WIRE_OPEN && (events & ~(uint32_t)EPOLLOUT))
        wire_read(wire);
}

void wire_flush(struct wire *wire)
{
    ASSERT(wire->sent <= wire->out.length);
    if (wire->state != WIRE_OPEN || wire->sent == wire->out.length)
        return;
    const char *rest = wire->out.data + wire->sent;
    ssize_t length = link_write(wire->link, rest, wire->out.length - wire->sent);
    if (length < 0) {
        wire_drop(wire, link_problem(wire->link));
        return;
    }
    wire->sent += (size_t)length;
    bool all = wire->sent == wire->out.length;
    if (wire->sent >= wire->out.length / 2) {
        buffer_consume(&wire->out, wire->sent);
        wire->sent = 0;
    }
    loop_io_set(wire->watch, all ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

// Tries the addresses in turn, one per attempt.
static void wire_connect(struct wire *wire, const struct address *addresses, int count)
{
    ASSERT(wire->state == WIRE_LOOKING_UP && !wire->link && !wire->watch);
    wire->server = *finder_server(wire->finder);
    finder_free(TAKE(wire->finder));
    int fd = address_connect(&addresses[wire->tries++ % (unsigned)count]);
    if (fd >= 0)
        wire->link = link_new(fd, &wire->server);
    if (fd < 0 || loop_io_new(wire->loop, fd, EPOLLOUT, wire_on_ready, wire, &wire->watch) < 0) {
        wire_drop(wire, "cannot connect");
        return;
    }
    wire->state = WIRE_CONNECTING;
    loop_timer_set(wire->timer, wire->connect_timeout_ms);
}

static void wire_look_up(struct wire *wire)
{
    struct address addresses[ADDRESSES_MAX];
    int count = finder_poll(wire->finder, addresses);
    if (count == 0)
        loop_timer_set(wire->timer, LOOKUP_POLL_MS);
    else if (count < 0)
        wire_drop(wire, finder_problem(wire->finder));
    else
        wire_connect(wire, addresses, count);
}

static void wire_on_timer(void *arg)
{
    struct wire *wire = CAST(wire, arg);
    if (wire->state == WIRE_CONNECTING) {
        wire_drop(wire, "connecting took too long");
        return;
    }
    if (wire->state == WIRE_PAUSED) {
        wire->state = WIRE_LOOKING_UP;
        if (finder_new(&wire->url, wire->tries, &wire->finder) < 0) {
            wire_drop(wire, "cannot look up the host");
            return;
        }
    }
    wire_look_up(wire);
}

int wire_new(struct loop *loop, const struct url *url, int64_t connect_timeout_ms, size_t out_max,
             const struct wire_handlers *handlers, void *arg, struct wire **ret_wire)
{
    ASSERT(handlers->on_open && handlers->on_reply && handlers->on_lost && out_max > 0);
    CLEANUP_FREE struct wire *wire = calloc(1, sizeof *wire);
    if (!wire)
        return -ERROR_MEMORY;
    *wire = (struct wire){.tag = TAG(wire),
                          .loop = loop,
                          .handlers = handlers,
                          .arg = arg,
                          .url = *url,
                          .pause_ms = PAUSE_FIRST_MS,
                          .connect_timeout_ms = connect_timeout_ms};
    buffer_init(&wire->out, out_max);
    int r = loop_timer_new(loop, wire_on_timer, wire, &wire->timer);
    if (r < 0)
        return r;
    loop_timer_set(wire->timer, 0);
    *ret_wire = TAKE(wire);
    return 0;
}

void wire_free(struct wire *wire)
{
    if (!wire)
        return;
    wire_close(wire);
    loop_timer_free(wire->timer);
    TAGGED_FREE(wire);
}

bool wire_is_open(const struct wire *wire)
{
    return wire->state == WIRE_OPEN;
}

void wire_write(struct wire *wire, const char *data, size_t length)
{
    if (wire->state != WIRE_OPEN)
        return;
    buffer_append(&wire->out, data, length);
    if (buffer_failed(&wire->out))
        wire_drop(wire, "too much to send");
}

void wire_command(struct wire *wire, int count, const char *const *texts)
{
    char *command = NULL;
    long long length =
        redisFormatCommandArgv(&command, count, (const char **)(uintptr_t)texts, NULL);
    if (length < 0) {
        wire_drop(wire, "no memory");
        return;
    }
    wire_write(wire, command, (size_t)length);
    redisFreeCommand(command);
}

void wire_settle(struct wire *wire)
{
    wire->pause_ms = PAUSE_FIRST_MS;
    wire->logged_ms = 0;
    metric_add(METRIC_CACHE_CONNECTS, 1);
}

int64_t wire_received_ms(const struct wire *wire)
{
    return wire->received_ms;
}
