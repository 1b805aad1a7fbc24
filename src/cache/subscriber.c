// SPDX-License-Identifier: Apache-2.0
// A loop's sharded pub/sub: subscribes to topics and renews all subscriptions after a reconnect.
#include "subscriber.h"

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "redis_reply.h"
#include "wire.h"

#include <string.h>

// Subscriptions are renewed in slices. Each slice is sent once the previous one is confirmed, so
// that neither side buffers all of it.
enum { SLICE = 500, PING_EVERY_MS = 1000, PING_ANSWER_MS = 2000, OUT_MAX = 64 << 20 };

struct topic {
    UT_hash_handle hh;
    char name[];
};

struct subscriber {
    uint32_t tag;
    struct loop *loop;
    struct wire *wire;
    struct loop_timer *ping_timer;
    struct topic *topics; // uthash, in subscription order
    struct topic *unsent; // the first not yet subscribed on this connection
    size_t unconfirmed;   // subscriptions sent but not yet confirmed
    int64_t asked;        // subscriptions sent so far, without renewals
    bool catching_up;     // renewing subscriptions after a reconnect
    int64_t ping_ms;      // when the unanswered PING was sent; 0: none
    cache_message_fn *on_message;
    void *message_arg;
    loop_fn *on_resubscribed;
    void *resubscribed_arg;
};

static void subscriber_send(struct subscriber *s, const char *verb, const char *topic)
{
    const char *texts[] = {verb, topic};
    wire_command(s->wire, 2, texts);
}

// Sends the next slice, or ends the renewal if all is confirmed.
static void subscriber_catch_up(struct subscriber *s)
{
    if (!s->catching_up || s->unconfirmed > 0)
        return;
    while (s->unsent && s->unconfirmed < SLICE) {
        subscriber_send(s, "SSUBSCRIBE", s->unsent->name);
        s->unsent = s->unsent->hh.next;
        s->unconfirmed++;
    }
    if (s->unconfirmed > 0)
        return;
    s->catching_up = false;
    wire_settle(s->wire);
    if (s->on_resubscribed)
        s->on_resubscribed(s->resubscribed_arg);
}

static void on_open(void *arg)
{
    struct subscriber *s = CAST(subscriber, arg);
    // Its reply starts the renewal, or is the error of a server that refuses us.
    wire_command(s->wire, 1, (const char *[]){"PING"});
    s->ping_ms = loop_now_ms(s->loop);
    s->unsent = s->topics;
    s->unconfirmed = 0;
    s->catching_up = true;
    loop_timer_set(s->ping_timer, PING_EVERY_MS);
    wire_flush(s->wire);
}

static void on_lost(void *arg)
{
    struct subscriber *s = CAST(subscriber, arg);
    loop_timer_clear(s->ping_timer);
    s->catching_up = false;
    s->unsent = NULL;
    s->unconfirmed = 0;
}

static void on_push(struct subscriber *s, const struct cache_value *value)
{
    const char *kind = cache_value_text(cache_value_at(value, 0));
    const struct cache_value *topic = cache_value_at(value, 1);
    const struct cache_value *data = cache_value_at(value, 2);
    if (strcmp(kind, "smessage") == 0) {
        if (s->on_message)
            s->on_message(s->message_arg, cache_value_text(topic), cache_value_text(data),
                          cache_value_length(data));
    } else if (strcmp(kind, "ssubscribe") == 0 && s->unconfirmed > 0) {
        s->unconfirmed--;
    }
}

static void on_reply(void *arg, redisReply *reply)
{
    struct subscriber *s = CAST(subscriber, arg);
    s->ping_ms = 0;
    if (reply->type == REDIS_REPLY_ERROR) {
        wire_drop(s->wire, reply->str);
        return;
    }
    if (reply->type == REDIS_REPLY_ARRAY)
        on_push(s, reply_value(reply));
    else if (strcmp(cache_value_text(reply_value(reply)), "PONG") != 0)
        return;
    subscriber_catch_up(s);
}

static void on_ping_timer(void *arg)
{
    struct subscriber *s = CAST(subscriber, arg);
    int64_t now_ms = loop_now_ms(s->loop);
    if (s->ping_ms && now_ms - s->ping_ms >= PING_ANSWER_MS) {
        wire_drop(s->wire, "no answer on the pub/sub connection");
        return;
    }
    if (!s->ping_ms && now_ms - wire_received_ms(s->wire) >= PING_EVERY_MS / 2) {
        s->ping_ms = now_ms;
        wire_command(s->wire, 1, (const char *[]){"PING"});
        wire_flush(s->wire);
    }
    if (wire_is_open(s->wire))
        loop_timer_set(s->ping_timer, PING_EVERY_MS);
}

int subscriber_new(struct loop *loop, const struct url *url, int64_t connect_timeout_ms,
                   struct subscriber **ret_subscriber)
{
    static const struct wire_handlers handlers = {on_open, on_reply, on_lost, "pub/sub"};
    struct subscriber *s = memory_must_new(sizeof *s);
    s->tag = TAG(subscriber);
    s->loop = loop;
    int r = loop_timer_new(loop, on_ping_timer, s, &s->ping_timer);
    if (r >= 0)
        r = wire_new(loop, url, connect_timeout_ms, OUT_MAX, &handlers, s, &s->wire);
    if (r < 0) {
        subscriber_free(s);
        return r;
    }
    *ret_subscriber = s;
    return 0;
}

void subscriber_free(struct subscriber *s)
{
    if (!s)
        return;
    wire_free(s->wire);
    loop_timer_free(s->ping_timer);
    struct topic *topic, *next;
    HASH_ITER(hh, s->topics, topic, next)
    {
        HASH_DEL(s->topics, topic);
        free(topic);
    }
    TAGGED_FREE(s);
}

void subscriber_flush(struct subscriber *s)
{
    wire_flush(s->wire);
}

void subscriber_on_message(struct subscriber *s, cache_message_fn *fn, void *arg)
{
    ASSERT(fn && !s->on_message); // topics may be subscribed to by now
    s->on_message = fn;
    s->message_arg = arg;
}

void subscriber_on_resubscribed(struct subscriber *s, loop_fn *fn, void *arg)
{
    ASSERT(fn && !s->on_resubscribed);
    s->on_resubscribed = fn;
    s->resubscribed_arg = arg;
}

void subscriber_add(struct subscriber *s, const char *name)
{
    struct topic *topic;
    HASH_FIND_STR(s->topics, name, topic);
    if (topic)
        return;
    size_t size = strlen(name) + 1;
    topic = memory_must_new(sizeof *topic + size);
    memcpy(topic->name, name, size);
    HASH_ADD_STR(s->topics, name, topic);
    if (!wire_is_open(s->wire))
        return;
    if (s->catching_up) {
        if (!s->unsent)
            s->unsent = topic;
    } else {
        subscriber_send(s, "SSUBSCRIBE", name);
        s->unconfirmed++;
        s->asked++;
    }
}

void subscriber_remove(struct subscriber *s, const char *name)
{
    struct topic *topic;
    HASH_FIND_STR(s->topics, name, topic);
    if (!topic)
        return;
    if (topic == s->unsent)
        s->unsent = topic->hh.next;
    HASH_DEL(s->topics, topic);
    free(topic);
    if (wire_is_open(s->wire))
        subscriber_send(s, "SUNSUBSCRIBE", name);
}

bool subscriber_is_settled(const struct subscriber *s)
{
    return wire_is_open(s->wire) && !s->catching_up;
}

int64_t subscriber_asked(const struct subscriber *s)
{
    return s->asked;
}

bool subscriber_has_confirmed(const struct subscriber *s, int64_t asked)
{
    return !subscriber_is_settled(s) || s->asked - (int64_t)s->unconfirmed >= asked;
}
