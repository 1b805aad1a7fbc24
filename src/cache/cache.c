// SPDX-License-Identifier: Apache-2.0
// A loop's connection to Redis: pipelines commands, matches replies to calls, and reconnects.
#include "cache/cache.h"

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "calls.h"
#include "command.h"
#include "redis_reply.h"
#include "redis_tls.h"
#include "subscriber.h"
#include "wire.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_MAX = 256 << 20 };

struct cache {
    uint32_t tag;
    struct loop *loop;
    struct cache_options options;
    struct url url;
    struct wire *wire;
    struct subscriber *subscriber;
    struct calls pending; // in the order sent
    size_t pending_bytes;
    struct calls refused; // refused_timer answers them with their `r`
    struct loop_timer *overdue_timer;
    struct loop_timer *refused_timer;
    char run_id[RUN_ID_SIZE];
    atomic_bool up; // written by the loop only; any thread may read it
    bool loading;   // whether the library is being loaded on this connection
};

const char *cache_url_problem(const char *redis_url)
{
    struct url url;
    if (strncmp(redis_url, "redis+cluster:", 14) == 0 ||
        strncmp(redis_url, "rediss+cluster:", 15) == 0)
        return "the URL of one server, or of Sentinels: Redis Cluster is not supported";
    if (url_parse(redis_url, &url) < 0)
        return "redis://[user:password@]host:port[/db], rediss://… (TLS) with "
               "?cacert=file&cert=file&"
               "key=file, redis+sentinel://host:port,…/master, or unix:///path, with special "
               "characters of a password or path as %XX";
    return url.tls ? tls_files_problem(&url) : NULL;
}

static void cache_refuse(struct cache *cache, const struct cache_call *call, int r)
{
    struct cache_call refused = {.fn = call->fn, .arg = call->arg, .r = r};
    if (!call->fn)
        return;
    calls_push(&cache->refused, &refused);
    loop_timer_set(cache->refused_timer, 0);
}

// Sends a call whose command is formatted already, and queues it for its reply.
static void cache_send(struct cache *cache, struct cache_call *call, const char *command,
                       size_t length)
{
    call->deadline_ms = loop_now_ms(cache->loop) + cache->options.timeout_ms;
    if (calls_count(&cache->pending) == 0)
        loop_timer_set(cache->overdue_timer, cache->options.timeout_ms);
    calls_push(&cache->pending, call);
    cache->pending_bytes += length;
    wire_write(cache->wire, command, length);
    // For calls from an idle callback that runs after ours.
    loop_again(cache->loop);
}

// Removes the call to which the next reply belongs.
static bool pending_pop(struct cache *cache, struct cache_call *ret_call)
{
    if (!calls_pop(&cache->pending, ret_call))
        return false;
    ASSERT(cache->pending_bytes >= ret_call->length);
    cache->pending_bytes -= ret_call->length;
    return true;
}

static bool pending_is_full(const struct cache *cache)
{
    return calls_count(&cache->pending) >= (size_t)cache->options.pending_max ||
           cache->pending_bytes >= cache->options.pending_bytes;
}

static void cache_format(struct cache *cache, int count, const char *const *texts,
                         const size_t *lengths, cache_fn *fn, void *arg)
{
    struct cache_call call = {.fn = fn, .arg = arg};
    CLEANUP(buffer_done) struct buffer command = BUFFER(COMMAND_MAX);
    command_append(&command, command_library_suffix(cache->options.library_name), count, texts,
                   lengths);
    if (buffer_failed(&command)) {
        cache_refuse(cache, &call, -ERROR_BUSY);
        return;
    }
    const char *data = command.data;
    if (command_is_function_call(texts[0]))
        call.command = TAKE(command.data);
    call.length = command.length;
    cache_send(cache, &call, data, call.length);
}

void cache_call(struct cache *cache, int count, const char *const *texts, const size_t *lengths,
                cache_fn *fn, void *arg)
{
    struct cache_call call = {.fn = fn, .arg = arg};
    ASSERT(count > 0 && texts);
    if (!cache->up) {
        cache_refuse(cache, &call, -ERROR_UNAVAILABLE);
        return;
    }
    if (pending_is_full(cache)) {
        metric_add(METRIC_CACHE_QUEUE_FULL, 1);
        cache_refuse(cache, &call, -ERROR_BUSY);
        return;
    }
    cache_format(cache, count, texts, lengths, fn, arg);
}

// Whether a step of the greeting succeeded. Drops the connection if Redis refused the step or the
// step could not be sent: it would never come up.
static bool greeting_step(struct cache *cache, int r, const struct cache_value *value)
{
    if (r == -ERROR_INTERNAL)
        wire_drop(cache->wire, cache_value_text(value));
    else if (r == -ERROR_BUSY)
        wire_drop(cache->wire, "no memory for its greeting");
    return r == 0;
}

static void on_info(void *arg, int r, const struct cache_value *value)
{
    struct cache *cache = CAST(cache, arg);
    if (greeting_step(cache, r, value))
        reply_run_id(value, cache->run_id);
}

static void on_library_loaded(void *arg, int r, const struct cache_value *value)
{
    struct cache *cache = CAST(cache, arg);
    if (!greeting_step(cache, r, value))
        return;
    cache->loading = false;
    if (cache->up)
        return;
    cache->up = true;
    wire_settle(cache->wire);
    log_write(LOG_INFO, "cache", "Redis is up, run id %s", cache->run_id);
}

static void cache_load_library(struct cache *cache)
{
    const char *texts[] = {"FUNCTION", "LOAD", "REPLACE", cache->options.library};
    if (cache->loading)
        return;
    cache->loading = true;
    cache_format(cache, 4, texts, NULL, on_library_loaded, cache);
}

static void on_library_listed(void *arg, int r, const struct cache_value *value)
{
    struct cache *cache = CAST(cache, arg);
    if (!greeting_step(cache, r, value))
        return;
    if (reply_has_library(value, &cache->options))
        on_library_loaded(cache, 0, NULL);
    else
        cache_load_library(cache);
}

static void on_open(void *arg)
{
    struct cache *cache = CAST(cache, arg);
    cache_format(cache, 2, (const char *[]){"INFO", "server"}, NULL, on_info, cache);
    const char *list[] = {"FUNCTION", "LIST", "LIBRARYNAME", cache->options.library_name,
                          "WITHCODE"};
    cache_format(cache, 5, list, NULL, on_library_listed, cache);
    wire_flush(cache->wire);
}

static void on_lost(void *arg)
{
    struct cache *cache = CAST(cache, arg);
    struct cache_call call;
    cache->up = false;
    cache->loading = false;
    cache->run_id[0] = '\0';
    loop_timer_clear(cache->overdue_timer);
    while (pending_pop(cache, &call)) {
        cache_refuse(cache, &call, -ERROR_UNAVAILABLE);
        free(call.command);
    }
}

static void cache_answer(struct cache_call *call, const redisReply *reply)
{
    bool failed = reply->type == REDIS_REPLY_ERROR;
    if (call->fn)
        call->fn(call->arg, failed ? -ERROR_INTERNAL : 0, reply_value(reply));
    else if (failed)
        log_write(LOG_WARN, "cache", "Redis refused a command: %s", reply->str);
    free(call->command);
}

static void on_reply(void *arg, redisReply *reply)
{
    struct cache *cache = CAST(cache, arg);
    struct cache_call call;
    if (!pending_pop(cache, &call)) {
        wire_drop(cache->wire, "an answer to nothing");
        return;
    }
    if (cache->url.master[0] && reply_is_of_replica(reply)) {
        cache_refuse(cache, &call, -ERROR_UNAVAILABLE);
        free(call.command);
        wire_drop(cache->wire, reply->str); // Sentinel knows the new master
        return;
    }
    if (call.command && !call.retried && reply_is_unknown_function(reply)) {
        // After FUNCTION FLUSH, or a failover to a server that never had it.
        cache_load_library(cache);
        call.retried = true;
        cache_send(cache, &call, call.command, call.length);
        return;
    }
    cache_answer(&call, reply);
}

static void on_overdue(void *arg)
{
    struct cache *cache = CAST(cache, arg);
    const struct cache_call *call = calls_first(&cache->pending);
    if (!call)
        return;
    int64_t left_ms = call->deadline_ms - loop_now_ms(cache->loop);
    if (left_ms > 0) {
        loop_timer_set(cache->overdue_timer, left_ms);
        return;
    }
    metric_add(METRIC_CACHE_TIMEOUTS, 1);
    wire_drop(cache->wire, "an answer is overdue");
}

// Answers only the calls refused so far: calls that the callbacks make wait for the next turn.
static void on_refused(void *arg)
{
    struct cache *cache = CAST(cache, arg);
    struct cache_call call;
    for (size_t left = calls_count(&cache->refused); left > 0; left--)
        if (calls_pop(&cache->refused, &call))
            call.fn(call.arg, call.r, NULL);
}

static void on_idle(void *arg)
{
    struct cache *cache = CAST(cache, arg);
    wire_flush(cache->wire);
    subscriber_flush(cache->subscriber);
}

static int cache_start(struct cache *cache)
{
    static const struct wire_handlers handlers = {on_open, on_reply, on_lost, "commands"};
    int64_t timeout_ms = cache->options.timeout_ms;
    // Twice, because sent bytes are discarded only once they are half of the buffer.
    size_t out_max = 2 * cache->options.pending_bytes + COMMAND_MAX;
    int r = url_parse(cache->options.redis_url, &cache->url);
    if (r >= 0)
        r = loop_timer_new(cache->loop, on_overdue, cache, &cache->overdue_timer);
    if (r >= 0)
        r = loop_timer_new(cache->loop, on_refused, cache, &cache->refused_timer);
    if (r >= 0)
        r = wire_new(cache->loop, &cache->url, timeout_ms, out_max, &handlers, cache, &cache->wire);
    if (r >= 0)
        r = subscriber_new(cache->loop, &cache->url, timeout_ms, &cache->subscriber);
    if (r >= 0)
        r = loop_idle_add(cache->loop, on_idle, cache);
    return r;
}

int cache_new(struct loop *loop, const struct cache_options *options, struct cache **ret_cache)
{
    struct cache *cache = memory_must_new(sizeof *cache);
    cache->tag = TAG(cache);
    cache->loop = loop;
    cache->options = *options;
    int r = cache_start(cache);
    if (r < 0) {
        cache_free(cache);
        return r;
    }
    *ret_cache = cache;
    return 0;
}

void cache_free(struct cache *cache)
{
    if (!cache)
        return;
    if (cache->wire)
        on_lost(cache);
    while (calls_count(&cache->refused) > 0)
        on_refused(cache);
    wire_free(cache->wire);
    subscriber_free(cache->subscriber);
    loop_timer_free(cache->overdue_timer);
    loop_timer_free(cache->refused_timer);
    calls_done(&cache->pending);
    calls_done(&cache->refused);
    TAGGED_FREE(cache);
}

bool cache_is_up(const struct cache *cache)
{
    return cache->up;
}

void cache_on_message(struct cache *cache, cache_message_fn *fn, void *arg)
{
    subscriber_on_message(cache->subscriber, fn, arg);
}

void cache_subscribe(struct cache *cache, const char *topic)
{
    subscriber_add(cache->subscriber, topic);
    loop_again(cache->loop);
}

void cache_unsubscribe(struct cache *cache, const char *topic)
{
    subscriber_remove(cache->subscriber, topic);
    loop_again(cache->loop);
}

void cache_on_resubscribed(struct cache *cache, loop_fn *fn, void *arg)
{
    subscriber_on_resubscribed(cache->subscriber, fn, arg);
}

bool cache_is_subscribed(const struct cache *cache)
{
    return subscriber_is_settled(cache->subscriber);
}

int64_t cache_subscriptions(const struct cache *cache)
{
    return subscriber_asked(cache->subscriber);
}

bool cache_has_confirmed(const struct cache *cache, int64_t subscriptions)
{
    return subscriber_has_confirmed(cache->subscriber, subscriptions);
}
