// SPDX-License-Identifier: Apache-2.0
// Sockets that asked to hear of others' presence. A watch is one user that somebody here wants to
// hear of; what changes within one pause is told together, so that a thousand users who reconnect
// at once are one frame for each socket.
#include "watch.h"

#include "connection.h"
#include "core.h"

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

struct watching {
    struct watch *watches;
    struct list due; // watchers that are to be told with the next flush
    bool timer_runs;
    struct loop_timer *timer;
};

struct watch {
    uint32_t tag;
    UT_hash_handle hh;
    struct gateway *gateway;
    char user_id[EVENT_ID_SIZE];
    bool is_known;
    bool is_active;
    bool is_changed; // since the last flush
    bool is_asked;   // Redis was, and has not answered
    int64_t looked_ms;
    struct watcher **watchers;
    uint32_t count;
    uint32_t capacity;
};

// Those who may be watched: users of one's own workspace.
static const struct statement members = {
    "gateway_watch",
    "SELECT u.id FROM users u WHERE (u.workspace_id = $1) IS TRUE AND u.id = ANY ($2)"};

struct found {
    struct watch_ask *ask;
    char user_id[EVENT_ID_SIZE];
    int is_active; // -1: not known
};

// A request of a client under way.
struct watch_ask {
    uint32_t tag;
    struct list link; // in the watcher's asks
    struct gateway *gateway;
    struct watcher *watcher; // NULL once it is gone, or has asked anew
    bool is_query;
    int left; // answers of a query that are to come
    int count;
    struct found *found;
};

static void watch_topic_follow(const struct watch *watch, bool follow)
{
    char topic[PRESENCE_KEY_SIZE];
    presence_topic(topic, watch->user_id);
    gateway_follow(watch->gateway, topic, follow);
}

static void watch_free(struct watch *watch)
{
    watch_topic_follow(watch, false);
    HASH_DEL(watch->gateway->watching->watches, watch);
    free(watch->watchers);
    TAGGED_FREE(watch);
}

static void watch_leave(struct watch *watch, const struct watcher *watcher)
{
    for (uint32_t i = 0; i < watch->count; i++) {
        if (watch->watchers[i] != watcher)
            continue;
        watch->watchers[i] = watch->watchers[--watch->count];
        break;
    }
    if (watch->count == 0 && !watch->is_asked)
        watch_free(watch);
}

static void watches_leave(struct watcher *watcher)
{
    for (uint32_t i = 0; i < watcher->count; i++)
        watch_leave(watcher->watches[i], watcher);
    free(TAKE(watcher->watches));
    watcher->count = 0;
}

void watch_init(struct watcher *watcher, struct connection *c)
{
    *watcher = (struct watcher){.connection = c};
    list_init(&watcher->asks);
    list_init(&watcher->due_link);
}

void watch_forget(struct watcher *watcher)
{
    LIST_FOREACH(link, &watcher->asks)
    {
        LIST_ITEM(link, struct watch_ask, link)->watcher = NULL;
        list_remove(link);
    }
    list_remove(&watcher->due_link);
    watches_leave(watcher);
}

static void flush_want(struct gateway *gateway)
{
    if (gateway->watching->timer_runs)
        return;
    gateway->watching->timer_runs = true;
    loop_timer_set(gateway->watching->timer, FLUSH_MS);
}

static void watch_set(struct watch *watch, bool is_active)
{
    if (watch->is_known && watch->is_active == is_active)
        return;
    watch->is_known = true;
    watch->is_active = is_active;
    watch->is_changed = true;
    flush_want(watch->gateway);
}

// The answer for a watch whose last listener may have gone meanwhile.
static void on_looked(void *arg, int r, const struct presence_state *state)
{
    struct watch *watch = CAST(watch, arg);
    struct gateway *gateway = watch->gateway;
    watch->is_asked = false;
    if (!gateway_answer(gateway)) {
        free(watch->watchers);
        TAGGED_FREE(watch);
        return;
    }
    if (r == 0)
        watch_set(watch, state->is_active);
    if (watch->count == 0)
        watch_free(watch);
}

static void watch_look(struct watch *watch)
{
    struct gateway *gateway = watch->gateway;
    const struct presence_change change = {.op = PRESENCE_LOOK,
                                           .user_id = watch->user_id,
                                           .device = "",
                                           .ttl_s = gateway->options.presence_ttl_s};
    watch->looked_ms = loop_now_ms(gateway->loop);
    if (watch->is_asked)
        return;
    watch->is_asked = true;
    gateway_ask(gateway);
    presence_apply(gateway->cache, &change, on_looked, watch);
}

static struct watch *watch_make(struct gateway *gateway, const char *user_id)
{
    struct watch *watch;
    HASH_FIND_STR(gateway->watching->watches, user_id, watch);
    if (watch)
        return watch;
    watch = TAGGED_NEW(watch);
    if (!watch)
        return NULL;
    watch->gateway = gateway;
    snprintf(watch->user_id, sizeof watch->user_id, "%s", user_id);
    HASH_ADD_STR(gateway->watching->watches, user_id, watch);
    watch_topic_follow(watch, true);
    return watch;
}

static void watcher_due(struct watcher *watcher)
{
    if (list_is_empty(&watcher->due_link))
        list_append(&watcher->connection->gateway->watching->due, &watcher->due_link);
}

static bool watch_enter(struct watcher *watcher, const char *user_id)
{
    struct watch *watch = watch_make(watcher->connection->gateway, user_id);
    if (!watch)
        return false;
    if (watch->count == watch->capacity) {
        uint32_t capacity = watch->capacity ? 2 * watch->capacity : 2;
        void *grown = reallocarray(watch->watchers, capacity, sizeof *watch->watchers);
        if (!grown)
            return false;
        watch->watchers = grown;
        watch->capacity = capacity;
    }
    watch->watchers[watch->count++] = watcher;
    watcher->watches[watcher->count++] = watch;
    // Its state as far as it is known goes out with the flush; and is looked at anew.
    watcher->is_new = true;
    watcher_due(watcher);
    flush_want(watch->gateway);
    watch_look(watch);
    return true;
}

// Sends one frame for the `count` ids in `ids` (JSON strings with commas).
static void presence_send(struct connection *c, const struct buffer *ids, int count, bool is_active)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(FRAME_MAX);
    buffer_append_format(&out, "{\"type\":\"presence_change\",\"%s\":%s",
                         count == 1 ? "user" : "users", count == 1 ? "" : "[");
    buffer_append(&out, ids->data, ids->length);
    buffer_append_format(&out, "%s,\"presence\":\"%s\"}", count == 1 ? "" : "]",
                         is_active ? "active" : "away");
    if (count > 0 && !buffer_failed(ids) && !buffer_failed(&out))
        connection_send_text(c, out.data, out.length);
}

// Those of its watches that are (not) active and not told of yet.
static void presence_tell(const struct watcher *watcher, bool is_active)
{
    CLEANUP(buffer_done) struct buffer ids = BUFFER(FRAME_MAX);
    int count = 0;
    struct json_writer w = json_writer_to(&ids);
    for (uint32_t i = 0; i < watcher->count; i++) {
        const struct watch *watch = watcher->watches[i];
        if (!watch->is_known || watch->is_active != is_active ||
            !(watch->is_changed || watcher->is_new))
            continue;
        json_text(&w, watch->user_id);
        count++;
    }
    presence_send(watcher->connection, &ids, count, is_active);
}

static void on_timer(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    gateway->watching->timer_runs = false;
    for (struct watch *watch = gateway->watching->watches; watch; watch = watch->hh.next)
        for (uint32_t i = 0; watch->is_changed && i < watch->count; i++)
            watcher_due(watch->watchers[i]);
    LIST_FOREACH(link, &gateway->watching->due)
    {
        struct watcher *watcher = LIST_ITEM(link, struct watcher, due_link);
        list_remove(link);
        presence_tell(watcher, true);
        presence_tell(watcher, false);
        watcher->is_new = false;
    }
    for (struct watch *watch = gateway->watching->watches; watch; watch = watch->hh.next)
        watch->is_changed = false;
}

void watch_hear(struct gateway *gateway, const char *user_id, const char *word, size_t length)
{
    struct watch *watch;
    HASH_FIND_STR(gateway->watching->watches, user_id, watch);
    if (watch && length == strlen("active") && memcmp(word, "active", length) == 0)
        watch_set(watch, true);
    else if (watch && length == strlen("away") && memcmp(word, "away", length) == 0)
        watch_set(watch, false);
}

void watch_refresh(struct gateway *gateway)
{
    int64_t every_ms = gateway->options.presence_ttl_s * 1000 / 4;
    int64_t now_ms = loop_now_ms(gateway->loop);
    for (struct watch *watch = gateway->watching->watches; watch; watch = watch->hh.next)
        if (now_ms - watch->looked_ms >= every_ms)
            watch_look(watch);
}

static void watches_replace(struct watcher *watcher, const struct result *result)
{
    int rows = result_rows(result);
    bool fine = true;
    watches_leave(watcher);
    watcher->watches = rows > 0 ? calloc((size_t)rows, sizeof *watcher->watches) : NULL;
    for (int row = 0; watcher->watches && fine && row < rows; row++)
        fine = watch_enter(watcher, result_text(result, row, 0));
    if (rows > 0 && (!watcher->watches || !fine))
        connection_doom(watcher->connection, CLOSE_POLICY, "no memory");
}

static void ask_free(struct watch_ask *ask)
{
    if (ask->watcher)
        list_remove(&ask->link);
    free(ask->found);
    TAGGED_FREE(ask);
}

static void query_tell(const struct watch_ask *ask, int is_active)
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
    presence_send(ask->watcher->connection, &ids, count, is_active == 1);
}

static void on_found(void *arg, int r, const struct presence_state *state)
{
    struct found *found = arg;
    struct watch_ask *ask = found->ask;
    bool alive = gateway_answer(ask->gateway);
    found->is_active = r == 0 ? state->is_active : -1;
    if (--ask->left > 0)
        return;
    if (alive && ask->watcher) {
        query_tell(ask, 1);
        query_tell(ask, 0);
    }
    ask_free(ask);
}

// Looks at each; the last answer frees `ask`.
static void query_run(struct watch_ask *ask, const struct result *result)
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
                                               .ttl_s = ask->gateway->options.presence_ttl_s};
        found->ask = ask;
        snprintf(found->user_id, sizeof found->user_id, "%s", result_text(result, i, 0));
        gateway_ask(ask->gateway);
        presence_apply(ask->gateway->cache, &change, on_found, found);
    }
}

static void on_members(void *arg, const struct store_outcome *outcome)
{
    struct watch_ask *ask = CAST(watch_ask, arg);
    bool alive = gateway_answer(ask->gateway);
    struct watcher *watcher = alive ? ask->watcher : NULL;
    if (!watcher || outcome->r < 0) {
        ask_free(ask);
        return;
    }
    if (ask->is_query) {
        query_run(ask, outcome->result);
        return;
    }
    ask_free(ask);
    watches_replace(watcher, outcome->result);
}

static void too_many_tell(struct connection *c)
{
    static const char text[] = "{\"type\":\"error\",\"error\":{\"code\":1,\"msg\":\"ids: too many, "
                               "or not a list of ids\"}}";
    metric_add(METRIC_PRESENCE_REFUSED, 1);
    connection_send_text(c, text, sizeof text - 1);
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

// A list that is asked for replaces those asked for before it, whose answers may come later.
static void asks_drop(struct watcher *watcher)
{
    LIST_FOREACH(link, &watcher->asks)
    {
        struct watch_ask *ask = LIST_ITEM(link, struct watch_ask, link);
        if (ask->is_query)
            continue;
        ask->watcher = NULL;
        list_remove(link);
    }
}

void watch_ask(struct watcher *watcher, const json_t *ids, bool is_query)
{
    struct connection *c = watcher->connection;
    CLEANUP_PARAMS struct params params = {0};
    int64_t max = is_query ? QUERY_MAX : c->gateway->options.presence_subs_max;
    params_text(&params, c->actor.workspace_id);
    if (!ids_take(ids, (size_t)max, &params)) {
        too_many_tell(c);
        return;
    }
    struct watch_ask *ask = TAGGED_NEW(watch_ask);
    if (!ask) {
        connection_doom(c, CLOSE_POLICY, "no memory");
        return;
    }
    ask->gateway = c->gateway;
    ask->watcher = watcher;
    ask->is_query = is_query;
    if (!is_query)
        asks_drop(watcher);
    list_append(&watcher->asks, &ask->link);
    gateway_ask(c->gateway);
    store_call(c->gateway->store, STORE_READ, &members, &params, on_members, ask);
}

int watches_new(struct gateway *gateway)
{
    gateway->watching = memory_must_new(sizeof *gateway->watching);
    list_init(&gateway->watching->due);
    return loop_timer_new(gateway->loop, on_timer, gateway, &gateway->watching->timer);
}

void watches_free(struct gateway *gateway)
{
    if (!gateway->watching)
        return;
    HASH_CLEAR(hh, gateway->watching->watches); // those that are left are freed with their answers
    loop_timer_free(gateway->watching->timer);
    free(TAKE(gateway->watching));
}
