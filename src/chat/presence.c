// SPDX-License-Identifier: Apache-2.0
// Updates and reads users' presence in Redis.
#include "chat/presence.h"
#include "base/check.h"

#include "base/clock.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBER_SIZE = 24 };

struct presence_call {
    uint32_t tag;
    struct cache *cache;
    presence_fn *fn;
    void *arg;
    char topic[PRESENCE_KEY_SIZE];
};

void presence_topic(char *ret_topic, const char *user_id)
{
    snprintf(ret_topic, PRESENCE_KEY_SIZE, "presence-events:{%s}", user_id);
}

void presence_session_key(char *ret_key, const char *user_id)
{
    snprintf(ret_key, PRESENCE_KEY_SIZE, "session:{%s}:device", user_id);
}

void presence_active_key(char *ret_key, const char *user_id)
{
    snprintf(ret_key, PRESENCE_KEY_SIZE, "active:{%s}", user_id);
}

static void on_applied(void *arg, int r, const struct cache_value *value)
{
    struct presence_call *call = CAST(presence_call, arg);
    struct presence_state state = {0};
    bool changed = false;

    if (r == 0 && cache_value_count(value) == 4) {
        state.is_active = cache_value_int(cache_value_at(value, 0)) == 1;
        state.manual_away = cache_value_int(cache_value_at(value, 1)) == 1;
        state.connections = cache_value_int(cache_value_at(value, 2));
        changed = cache_value_int(cache_value_at(value, 3)) == 1;
    }
    if (changed) {
        const char *word = state.is_active ? "active" : "away";
        cache_call(call->cache, 3, (const char *[]){"SPUBLISH", call->topic, word}, NULL, NULL,
                   NULL);
    }
    if (call->fn)
        call->fn(call->arg, r, r == 0 ? &state : NULL);
    TAGGED_FREE(call);
}

void presence_apply(struct cache *cache, const struct presence_change *change, presence_fn *fn,
                    void *arg)
{
    static const char *const ops[] = {"on", "off", "look", "manual"};
    char session[PRESENCE_KEY_SIZE], presence[PRESENCE_KEY_SIZE];
    char connections[NUMBER_SIZE], ttl[NUMBER_SIZE];
    struct presence_call *call = TAGGED_NEW(presence_call);

    ASSERT((size_t)change->op < sizeof ops / sizeof *ops && change->user_id && change->device);
    if (!call) {
        if (fn)
            fn(arg, -ERROR_MEMORY, NULL);
        return;
    }
    call->cache = cache;
    call->fn = fn;
    call->arg = arg;
    presence_topic(call->topic, change->user_id);
    presence_session_key(session, change->user_id);
    snprintf(presence, sizeof presence, "presence:{%s}", change->user_id);
    snprintf(connections, sizeof connections, "%" PRId64, change->connections);
    snprintf(ttl, sizeof ttl, "%" PRId64, change->ttl_s);
    const char *texts[] = {
        "FCALL",         "presence_apply", "2",         session, presence,
        ops[change->op], change->device,   connections, ttl,     change->manual_away ? "1" : "0"};
    cache_call(cache, sizeof texts / sizeof *texts, texts, NULL, on_applied, call);
}

void presence_speak(struct cache *cache, const char *user_id, const char *socket, int64_t active_s)
{
    char key[PRESENCE_KEY_SIZE], ends[NUMBER_SIZE], ttl[NUMBER_SIZE];

    presence_active_key(key, user_id);
    snprintf(ends, sizeof ends, "%" PRId64, clock_wall_us() / 1000000 + active_s);
    snprintf(ttl, sizeof ttl, "%" PRId64, active_s);
    cache_call(cache, 4, (const char *[]){"HSET", key, socket, ends}, NULL, NULL, NULL);
    cache_call(cache, 3, (const char *[]){"EXPIRE", key, ttl}, NULL, NULL, NULL);
}

void presence_fall_silent(struct cache *cache, const char *user_id, const char *socket)
{
    char key[PRESENCE_KEY_SIZE];

    presence_active_key(key, user_id);
    cache_call(cache, 3, (const char *[]){"HDEL", key, socket}, NULL, NULL, NULL);
}
