// SPDX-License-Identifier: Apache-2.0
// Asks name servers and Sentinels where the server is.
#include "redis_finder.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/memory.h"
#include "redis_link.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENTINEL_MS = 250, POLL_MS = 5, PROBLEM_SIZE = 240 };

struct finder {
    const struct url *url;
    struct url sentinel; // the one being asked
    struct url server;
    bool found;            // `server` is known; `lookup` is of its host
    struct lookup *lookup; // otherwise of the Sentinel's host
    struct link *link;     // to the Sentinel
    unsigned first;
    int asked; // how many Sentinels so far
    int64_t deadline_ms;
    char problem[PROBLEM_SIZE];
};

static int finder_fail(struct finder *finder, const char *what, const char *why)
{
    snprintf(finder->problem, sizeof finder->problem, "%s%s", what, why);
    return -ERROR_UNAVAILABLE;
}

static int sentinel_fail(struct finder *finder, const char *why)
{
    return finder_fail(finder, "Sentinel: ", why);
}

static int server_find(struct finder *finder)
{
    finder->found = true;
    if (lookup_new(&finder->server, &finder->lookup) < 0)
        return finder_fail(finder, "cannot look up the host", "");
    return 0;
}

static void sentinel_leave(struct finder *finder)
{
    link_free(TAKE(finder->link));
    lookup_free(TAKE(finder->lookup));
}

// Begins to ask the next Sentinel.
static int sentinel_next(struct finder *finder)
{
    const struct url *url = finder->url;
    sentinel_leave(finder);
    if (finder->asked == url->sentinels)
        return -ERROR_UNAVAILABLE;
    unsigned number = (finder->first + (unsigned)finder->asked++) % (unsigned)url->sentinels;
    url_sentinel(url, (int)number, &finder->sentinel);
    finder->deadline_ms = clock_monotonic_ms() + SENTINEL_MS;
    if (lookup_new(&finder->sentinel, &finder->lookup) < 0)
        return finder_fail(finder, "cannot look up the host of a Sentinel", "");
    return 0;
}

static int sentinel_connect(struct finder *finder)
{
    struct address addresses[ADDRESSES_MAX];
    int count = lookup_poll(finder->lookup, addresses);
    if (count == 0)
        return 0;
    int fd = count > 0 ? address_connect(&addresses[0]) : count;
    if (fd < 0)
        return sentinel_fail(finder, count > 0 ? "cannot connect" : "unknown host");
    finder->link = link_new(fd, &finder->sentinel);
    link_ask(finder->link, 3,
             (const char *[]){"SENTINEL", "GET-MASTER-ADDR-BY-NAME", finder->url->master});
    return 0;
}

// The answer, of a peer that may say anything, becomes `server`.
static int answer_read(struct finder *finder)
{
    const redisReply *answer = link_answer(finder->link);
    int64_t port;
    bool is_pair = answer->type == REDIS_REPLY_ARRAY && answer->elements == 2 &&
                   answer->element[0]->type == REDIS_REPLY_STRING &&
                   answer->element[1]->type == REDIS_REPLY_STRING;
    if (!is_pair)
        return sentinel_fail(finder, "it knows no master of that name");
    const redisReply *host = answer->element[0], *number = answer->element[1];
    if (host->len == 0 || host->len >= URL_TEXT_SIZE || strlen(host->str) != host->len ||
        integer_parse(number->str, number->len, 1, 65535, &port) < 0)
        return sentinel_fail(finder, "its answer is no address");
    finder->server = *finder->url;
    memcpy(finder->server.host, host->str, host->len + 1);
    snprintf(finder->server.port, sizeof finder->server.port, "%d", (int)port);
    return 1;
}

// 1: it has answered.
static int sentinel_poll(struct finder *finder)
{
    if (!finder->link)
        return sentinel_connect(finder);
    struct pollfd ready = {.fd = link_fd(finder->link), .events = link_events(finder->link)};
    if (poll(&ready, 1, 0) <= 0)
        return 0;
    int r = link_open(finder->link);
    if (r < 0)
        return sentinel_fail(finder, link_problem(finder->link));
    return r == 1 ? answer_read(finder) : 0;
}

static int master_poll(struct finder *finder)
{
    int r = sentinel_poll(finder);
    if (r == 0 && clock_monotonic_ms() >= finder->deadline_ms)
        r = sentinel_fail(finder, "no answer");
    if (r < 0)
        return sentinel_next(finder);
    if (r == 0)
        return 0;
    sentinel_leave(finder);
    return server_find(finder);
}

int finder_new(const struct url *url, unsigned first, struct finder **ret_finder)
{
    struct finder *finder = memory_must_new(sizeof *finder);
    *finder = (struct finder){.url = url, .first = first, .server = *url};
    int r = url->master[0] ? sentinel_next(finder) : server_find(finder);
    if (r < 0) {
        finder_free(finder);
        return r;
    }
    *ret_finder = finder;
    return 0;
}

void finder_free(struct finder *finder)
{
    if (!finder)
        return;
    sentinel_leave(finder);
    free(finder);
}

int finder_poll(struct finder *finder, struct address *ret_addresses)
{
    if (!finder->found)
        return master_poll(finder);
    int count = lookup_poll(finder->lookup, ret_addresses);
    return count < 0 ? finder_fail(finder, "unknown host", "") : count;
}

int finder_wait(struct finder *finder, int64_t timeout_ms, struct address *ret_addresses)
{
    int64_t deadline_ms = clock_monotonic_ms() + timeout_ms;
    while (!finder->found && clock_monotonic_ms() < deadline_ms) {
        int r = finder_poll(finder, ret_addresses);
        if (r < 0)
            return r;
        (void)poll(NULL, 0, finder->found ? 0 : POLL_MS);
    }
    if (!finder->found)
        return finder_fail(finder, "Sentinel: ", "no answer");
    int count = lookup_wait(finder->lookup, deadline_ms - clock_monotonic_ms(), ret_addresses);
    return count > 0 ? count : finder_fail(finder, "unknown host", "");
}

const struct url *finder_server(const struct finder *finder)
{
    return &finder->server;
}

const char *finder_problem(const struct finder *finder)
{
    return finder->problem;
}
