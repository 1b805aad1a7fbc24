// SPDX-License-Identifier: Apache-2.0
// Sockets' subscriptions to other users' presence. There is one struct presence_subscription per
// user, shared by all subscribers here. Changes within FLUSH_MS are sent together, so that a
// thousand users who reconnect at once cost each socket one frame.
#include "presence_subscriptions.h"

#include "../connection/connection.h"
#include "../core.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "chat/presence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLUSH_MS = 200, FRAME_MAX = 1 << 20, QUERY_MAX = 500 };

struct presence_subscriptions {
    struct presence_subscription *subscriptions;
    struct list due; // subscribers to be sent to at the next flush
    bool timer_runs;
    struct loop_timer *timer;
};

struct presence_subscription {
    uint32_t tag;
    UT_hash_handle hh;
    struct gateway *gateway;
    char user_id[EVENT_ID_SIZE];
    bool is_known;
    bool is_active;
    bool is_changed; // since the last flush
    bool is_asked;   // a request to Redis is in flight
    int64_t looked_ms;
    struct presence_subscriber **subscribers;
    uint32_t count;
    uint32_t capacity;
};

// A client may subscribe to the users of its own workspace.
static const struct statement members = {
    "gateway_watch",
    "SELECT u.id FROM users u WHERE (u.workspace_id = $1) IS TRUE AND u.id = ANY ($2)"};

struct found {
    uint32_t tag;
    struct presence_subscriber_ask *ask;
    char user_id[EVENT_ID_SIZE];
    int is_active; // -1: unknown
};

// A client's request in progress.
struct presence_subscriber_ask {
    uint32_t tag;
    struct list link; // in the subscriber's asks
    struct gateway *gateway;
    struct presence_subscriber *subscriber; // NULL: gone, or it sent a newer request
    bool is_query;
    int left; // answers that a query waits for
    int count;
    struct found *found;
};

static void subscription_topic_set(const struct presence_subscription *subscription, bool subscribe)
{
    char topic[PRESENCE_KEY_SIZE];
    presence_topic(topic, subscription->user_id);
    gateway_subscribe(subscription->gateway, topic, subscribe);
}

static void subscription_free(struct presence_subscription *subscription)
{
    subscription_topic_set(subscription, false);
    HASH_DEL(subscription->gateway->presence_subscriptions->subscriptions, subscription);
    free(subscription->subscribers);
    TAGGED_FREE(subscription);
}

static void subscription_leave(struct presence_subscription *subscription,
                               const struct presence_subscriber *subscriber)
{
    for (uint32_t i = 0; i < subscription->count; i++) {
        if (subscription->subscribers[i] != subscriber)
            continue;
        subscription->subscribers[i] = subscription->subscribers[--subscription->count];
        break;
    }
    if (subscription->count == 0 && !subscription->is_asked)
        subscription_free(subscription);
}

static void subscriptions_leave(struct presence_subscriber *subscriber)
{
    for (uint32_t i = 0; i < subscriber->count; i++)
        subscription_leave(subscriber->subscriptions[i], subscriber);
    free(TAKE(subscriber->subscriptions));
    subscriber->count = 0;
}

void presence_subscriber_init(struct presence_subscriber *subscriber, struct connection *c)
{
    *subscriber = (struct presence_subscriber){.connection = c};
    list_init(&subscriber->asks);
    list_init(&subscriber->due_link);
}

void presence_subscriber_leave(struct presence_subscriber *subscriber)
{
    LIST_FOREACH(link, &subscriber->asks)
    {
        LIST_ITEM(link, struct presence_subscriber_ask, link)->subscriber = NULL;
        list_remove(link);
    }
    list_remove(&subscriber->due_link);
    subscriptions_leave(subscriber);
}

static void flush_schedule(struct gateway *gateway)
{
    if (gateway->presence_subscriptions->timer_runs)
        return;
    gateway->presence_subscriptions->timer_runs = true;
    loop_timer_set(gateway->presence_subscriptions->timer, FLUSH_MS);
}

static void subscription_set(struct presence_subscription *subscription, bool is_active)
{
    if (subscription->is_known && subscription->is_active == is_active)
        return;
    subscription->is_known = true;
    subscription->is_active = is_active;
    subscription->is_changed = true;
    flush_schedule(subscription->gateway);
}

// The last subscriber may have left before this answer: then frees the subscription.
static void on_looked(void *arg, int r, const struct presence_state *state)
{
    struct presence_subscription *subscription = CAST(presence_subscription, arg);
    struct gateway *gateway = subscription->gateway;
    subscription->is_asked = false;
    if (!gateway_answer(gateway)) {
        free(subscription->subscribers);
        TAGGED_FREE(subscription);
        return;
    }
    if (r == 0)
        subscription_set(subscription, state->is_active);
    if (subscription->count == 0)
        subscription_free(subscription);
}

static void subscription_look(struct presence_subscription *subscription)
{
    struct gateway *gateway = subscription->gateway;
    const struct presence_change change = {.op = PRESENCE_LOOK,
                                           .user_id = subscription->user_id,
                                           .device = "",
                                           .ttl_s = gateway->options.settings.presence_ttl_s};
    subscription->looked_ms = loop_now_ms(gateway->loop);
    if (subscription->is_asked)
        return;
    subscription->is_asked = true;
    gateway_ask(gateway);
    presence_apply(gateway->cache, &change, on_looked, subscription);
}

static struct presence_subscription *subscription_make(struct gateway *gateway, const char *user_id)
{
    struct presence_subscription *subscription;
    HASH_FIND_STR(gateway->presence_subscriptions->subscriptions, user_id, subscription);
    if (subscription)
        return subscription;
    subscription = TAGGED_NEW(presence_subscription);
    if (!subscription)
        return NULL;
    subscription->gateway = gateway;
    snprintf(subscription->user_id, sizeof subscription->user_id, "%s", user_id);
    HASH_ADD_STR(gateway->presence_subscriptions->subscriptions, user_id, subscription);
    subscription_topic_set(subscription, true);
    return subscription;
}

static void subscriber_due(struct presence_subscriber *subscriber)
{
    if (list_is_empty(&subscriber->due_link))
        list_append(&subscriber->connection->gateway->presence_subscriptions->due,
                    &subscriber->due_link);
}

static bool subscription_enter(struct presence_subscriber *subscriber, const char *user_id)
{
    struct presence_subscription *subscription =
        subscription_make(subscriber->connection->gateway, user_id);
    if (!subscription)
        return false;
    if (subscription->count == subscription->capacity) {
        uint32_t capacity = subscription->capacity ? 2 * subscription->capacity : 2;
        void *grown =
            reallocarray(subscription->subscribers, capacity, sizeof *subscription->subscribers);
        if (!grown)
            return false;
        subscription->subscribers = grown;
        subscription->capacity = capacity;
    }
    subscription->subscribers[subscription->count++] = subscriber;
    subscriber->subscriptions[subscriber->count++] = subscription;
    // A known state is sent with the next flush; Redis is also asked for the current one.
    subscriber->is_new = true;
    subscriber_due(subscriber);
    flush_schedule(subscription->gateway);
    subscription_look(subscription);
    return true;
}

// Sends one frame for the `count` ids in `ids` (JSON strings, separated by commas).
static void presence_send(struct connection *c, const struct buffer *ids, int count, bool is_active)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(FRAME_MAX);
    buffer_append_format(&out, "{\"type\":\"presence_change\",\"%s\":%s",
                         count == 1 ? "user" : "users", count == 1 ? "" : "[");
    buffer_append(&out, ids->data, ids->length);
    buffer_append_format(&out, "%s,\"presence\":\"%s\"}", count == 1 ? "" : "]",
                         is_active ? "active" : "away");
    if (count > 0 && !buffer_failed(ids) && !buffer_failed(&out))
        connection_send_text(c, "presence_change", out.data, out.length);
}

// Sends the users that are (not) active and whose state was not sent yet.
static void presence_flush(const struct presence_subscriber *subscriber, bool is_active)
{
    CLEANUP(buffer_done) struct buffer ids = BUFFER(FRAME_MAX);
    int count = 0;
    struct json_writer w = json_writer_to(&ids);
    for (uint32_t i = 0; i < subscriber->count; i++) {
        const struct presence_subscription *subscription = subscriber->subscriptions[i];
        if (!subscription->is_known || subscription->is_active != is_active ||
            !(subscription->is_changed || subscriber->is_new))
            continue;
        json_text(&w, subscription->user_id);
        count++;
    }
    presence_send(subscriber->connection, &ids, count, is_active);
}

static void on_timer(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    gateway->presence_subscriptions->timer_runs = false;
    for (struct presence_subscription *subscription =
             gateway->presence_subscriptions->subscriptions;
         subscription; subscription = subscription->hh.next)
        for (uint32_t i = 0; subscription->is_changed && i < subscription->count; i++)
            subscriber_due(subscription->subscribers[i]);
    LIST_FOREACH(link, &gateway->presence_subscriptions->due)
    {
        struct presence_subscriber *subscriber =
            LIST_ITEM(link, struct presence_subscriber, due_link);
        list_remove(link);
        presence_flush(subscriber, true);
        presence_flush(subscriber, false);
        subscriber->is_new = false;
    }
    for (struct presence_subscription *subscription =
             gateway->presence_subscriptions->subscriptions;
         subscription; subscription = subscription->hh.next)
        subscription->is_changed = false;
}

void presence_subscriptions_send(struct gateway *gateway, const char *user_id, const char *word,
                                 size_t length)
{
    struct presence_subscription *subscription;
    HASH_FIND_STR(gateway->presence_subscriptions->subscriptions, user_id, subscription);
    if (subscription && length == strlen("active") && memcmp(word, "active", length) == 0)
        subscription_set(subscription, true);
    else if (subscription && length == strlen("away") && memcmp(word, "away", length) == 0)
        subscription_set(subscription, false);
}

void presence_subscriptions_refresh(struct gateway *gateway)
{
    int64_t every_ms = gateway->options.settings.presence_ttl_s * 1000 / 4;
    int64_t now_ms = loop_now_ms(gateway->loop);
    for (struct presence_subscription *subscription =
             gateway->presence_subscriptions->subscriptions;
         subscription; subscription = subscription->hh.next)
        if (now_ms - subscription->looked_ms >= every_ms)
            subscription_look(subscription);
}

static void subscriptions_replace(struct presence_subscriber *subscriber,
                                  const struct result *result)
{
    int rows = result_rows(result);
    bool fine = true;
    subscriptions_leave(subscriber);
    subscriber->subscriptions =
        rows > 0 ? calloc((size_t)rows, sizeof *subscriber->subscriptions) : NULL;
    for (int row = 0; subscriber->subscriptions && fine && row < rows; row++)
        fine = subscription_enter(subscriber, result_text(result, row, 0));
    if (rows > 0 && (!subscriber->subscriptions || !fine))
        connection_close(subscriber->connection, CLOSE_POLICY, "no memory");
}

static void ask_free(struct presence_subscriber_ask *ask)
{
    if (ask->subscriber)
        list_remove(&ask->link);
    free(ask->found);
    TAGGED_FREE(ask);
}

static void query_answer(const struct presence_subscriber_ask *ask, int is_active)
{
    CLEANUP(buffer_done) struct buffer ids = BUFFER(FRAME_MAX);
    int count = 0;
    struct json_writer w = json_writer_to(&ids);
    for (int i = 0; i < ask->count; i++) {
        if (ask->found[i].is_active != is_active)
            continue;
        json_text(&w, ask->found[i].user_id);
        count++;
    }
    presence_send(ask->subscriber->connection, &ids, count, is_active == 1);
}

static void on_found(void *arg, int r, const struct presence_state *state)
{
    struct found *found = CAST(found, arg);
    struct presence_subscriber_ask *ask = found->ask;
    bool alive = gateway_answer(ask->gateway);
    found->is_active = r == 0 ? state->is_active : -1;
    if (--ask->left > 0)
        return;
    if (alive && ask->subscriber) {
        query_answer(ask, 1);
        query_answer(ask, 0);
    }
    ask_free(ask);
}

// Asks Redis for each user; the last answer frees `ask`.
static void query_run(struct presence_subscriber_ask *ask, const struct result *result)
{
    ask->count = ask->left = result_rows(result);
    ask->found = ask->count > 0 ? calloc((size_t)ask->count, sizeof *ask->found) : NULL;
    if (!ask->found) {
        ask_free(ask);
        return;
    }
    for (int i = 0, count = ask->count; i < count; i++) {
        struct found *found = &ask->found[i];
        const struct presence_change change = {.op = PRESENCE_LOOK,
                                               .user_id = found->user_id,
                                               .device = "",
                                               .ttl_s =
                                                   ask->gateway->options.settings.presence_ttl_s};
        found->tag = TAG(found);
        found->ask = ask;
        snprintf(found->user_id, sizeof found->user_id, "%s", result_text(result, i, 0));
        gateway_ask(ask->gateway);
        presence_apply(ask->gateway->cache, &change, on_found, found);
    }
}

static void on_members(void *arg, const struct store_outcome *outcome)
{
    struct presence_subscriber_ask *ask = CAST(presence_subscriber_ask, arg);
    bool alive = gateway_answer(ask->gateway);
    struct presence_subscriber *subscriber = alive ? ask->subscriber : NULL;
    if (!subscriber || outcome->r < 0) {
        ask_free(ask);
        return;
    }
    if (ask->is_query) {
        query_run(ask, outcome->result);
        return;
    }
    ask_free(ask);
    subscriptions_replace(subscriber, outcome->result);
}

static void ids_error_send(struct connection *c)
{
    static const char text[] = "{\"type\":\"error\",\"error\":{\"code\":1,\"msg\":\"ids: too many, "
                               "or not a list of ids\"}}";
    metric_add(METRIC_PRESENCE_REFUSED, 1);
    connection_send_text(c, "error", text, sizeof text - 1);
}

static bool ids_take(const json_t *ids, size_t max, struct params *params)
{
    size_t index;
    const json_t *id;
    if (!json_is_array(ids) || json_array_size(ids) > max)
        return false;
    params_open_text_array(params);
    json_array_foreach(ids, index, id)
    {
        if (!json_is_string(id) || !id_is_valid(json_string_value(id), "UW"))
            return false;
        params_element_text_n(params, json_string_value(id), json_string_length(id));
    }
    params_close_array(params);
    return true;
}

// A new list replaces earlier ones, whose answers may arrive later.
static void asks_drop(struct presence_subscriber *subscriber)
{
    LIST_FOREACH(link, &subscriber->asks)
    {
        struct presence_subscriber_ask *ask = LIST_ITEM(link, struct presence_subscriber_ask, link);
        if (ask->is_query)
            continue;
        ask->subscriber = NULL;
        list_remove(link);
    }
}

void presence_subscriber_ask(struct presence_subscriber *subscriber, const json_t *ids,
                             bool is_query)
{
    struct connection *c = subscriber->connection;
    CLEANUP_PARAMS struct params params = {0};
    int64_t max = is_query ? QUERY_MAX : c->gateway->options.settings.presence_subs_max;
    params_text(&params, c->actor.workspace_id);
    if (!ids_take(ids, (size_t)max, &params)) {
        ids_error_send(c);
        return;
    }
    struct presence_subscriber_ask *ask = TAGGED_NEW(presence_subscriber_ask);
    if (!ask) {
        connection_close(c, CLOSE_POLICY, "no memory");
        return;
    }
    ask->gateway = c->gateway;
    ask->subscriber = subscriber;
    ask->is_query = is_query;
    if (!is_query)
        asks_drop(subscriber);
    list_append(&subscriber->asks, &ask->link);
    gateway_ask(c->gateway);
    store_call(c->gateway->store, STORE_READ, &members, &params, on_members, ask);
}

int presence_subscriptions_new(struct gateway *gateway)
{
    gateway->presence_subscriptions = memory_must_new(sizeof *gateway->presence_subscriptions);
    list_init(&gateway->presence_subscriptions->due);
    return loop_timer_new(gateway->loop, on_timer, gateway,
                          &gateway->presence_subscriptions->timer);
}

void presence_subscriptions_free(struct gateway *gateway)
{
    if (!gateway->presence_subscriptions)
        return;
    HASH_CLEAR(hh, gateway->presence_subscriptions
                       ->subscriptions); // the remaining ones are freed with their answers
    loop_timer_free(gateway->presence_subscriptions->timer);
    free(TAKE(gateway->presence_subscriptions));
}
