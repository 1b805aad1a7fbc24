// SPDX-License-Identifier: Apache-2.0
// users.getPresence and users.setPresence.
#include "methods.h"

#include "base/check.h"
#include "chat/presence.h"
#include "chat/unstored_frame.h"
#include "unread/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct statement PRESENCE = {
    "users_presence",
    "SELECT u.manual_away, u.active, coalesce((SELECT max(t.last_used) FROM tokens t WHERE "
    "t.user_id = u.id), 0)"
    " FROM users u WHERE u.id = $2 AND (u.workspace_id = $1) IS TRUE",
};
static const struct statement SET_PRESENCE = {
    "users_set_presence",
    "UPDATE users SET manual_away = $2 WHERE id = $1",
};

struct asked {
    uint32_t tag;
    const char *user_id;
    bool manual_away;
    int64_t last_used;
};

static void looked(void *arg, int r, const struct presence_state *state)
{
    struct invocation *invocation = CAST(invocation, arg);
    const struct asked *asked = CAST(asked, invocation->state);

    if (r < 0) {
        invocation_fail(invocation, -ERROR_UNAVAILABLE);
        return;
    }
    bool is_self = strcmp(asked->user_id, invocation->actor->user_id) == 0;
    bool is_active = state->is_active;
    bool is_online = state->connections > 0;
    int64_t connections = state->connections;
    struct json_writer *w = invocation_open(invocation);
    json_key_string(w, "presence", is_active ? "active" : "away");
    if (is_self) {
        json_key_bool(w, "online", is_online);
        json_key_bool(w, "auto_away", !is_online);
        json_key_bool(w, "manual_away", asked->manual_away);
        json_key_int(w, "connection_count", connections);
        json_key_int(w, "last_activity", asked->last_used);
    }
    invocation_close(invocation);
}

static void presence_answer(struct invocation *invocation, const struct result *result)
{
    struct asked *asked = CAST(asked, invocation->state);

    if (result_rows(result) == 0) {
        invocation_fail(invocation, -ERROR_USER_NOT_FOUND);
        return;
    }
    asked->manual_away = result_bool(result, 0, 0);
    asked->last_used = result_int(result, 0, 2);
    const struct presence_change change = {.op = PRESENCE_LOOK,
                                           .user_id = asked->user_id,
                                           .device = "",
                                           .ttl_s = invocation->api->options.presence_ttl_s,
                                           .manual_away = asked->manual_away};
    presence_apply(invocation->api->options.cache, &change, looked, invocation);
}

void users_get_presence(struct invocation *invocation)
{
    struct params params = {0};
    struct asked *asked = TAGGED_NEW(asked);

    if (!asked) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    invocation->state = asked;
    asked->user_id = invocation->actor->user_id;
    if (invocation_has(invocation, "user") && !take_user(invocation, "user", &asked->user_id))
        return;
    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, asked->user_id);
    invocation_query(invocation, STORE_READ, &PRESENCE, &params, presence_answer);
}

// Notifies the user's own connections on all instances.
static void manual_publish(struct invocation *invocation, bool away)
{
    char topic[KEY_SIZE];
    char frame[80];

    key_user_topic(topic, invocation->actor->user_id);
    snprintf(frame, sizeof frame, "{\"type\":\"manual_presence_change\",\"presence\":\"%s\"}",
             away ? "away" : "active");
    unstored_frame_publish(invocation->api->options.cache, topic, frame, strlen(frame));
}

static void shown(void *arg, int r, const struct presence_state *state)
{
    struct invocation *invocation = CAST(invocation, arg);

    (void)r; // if Redis missed it, Postgres' row is used once Redis is back
    (void)state;
    invocation_open(invocation);
    invocation_close(invocation);
}

static void set_answer(struct invocation *invocation, const struct result *result)
{
    const struct asked *asked = CAST(asked, invocation->state);
    const struct presence_change change = {.op = PRESENCE_MANUAL,
                                           .user_id = invocation->actor->user_id,
                                           .device = "",
                                           .ttl_s = invocation->api->options.presence_ttl_s,
                                           .manual_away = asked->manual_away};

    (void)result;
    manual_publish(invocation, asked->manual_away);
    presence_apply(invocation->api->options.cache, &change, shown, invocation);
}

void users_set_presence(struct invocation *invocation)
{
    struct params params = {0};
    const char *presence = request_arg(invocation->request, "presence");
    struct asked *asked = TAGGED_NEW(asked);

    if (!asked) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    invocation->state = asked;
    if (!presence || (strcmp(presence, "auto") != 0 && strcmp(presence, "away") != 0)) {
        invocation_fail_message(invocation, -ERROR_INVALID_PRESENCE,
                                "presence: must be auto or away");
        return;
    }
    asked->manual_away = strcmp(presence, "away") == 0;
    params_text(&params, invocation->actor->user_id);
    params_bool(&params, asked->manual_away);
    invocation_query(invocation, STORE_WRITE, &SET_PRESENCE, &params, set_answer);
}
