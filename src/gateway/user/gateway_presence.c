// SPDX-License-Identifier: Apache-2.0
// Writes to Redis which users are connected here: when they connect, again before the entry
// expires, and shortly after they have left (a user who reconnects at once was never away).
#include "gateway_presence.h"

#include "../core.h"
#include "users.h"

#include "chat/presence.h"

#include <stdio.h>
#include <stdlib.h>

enum { REFRESHES_A_TTL = 3 };

// A user whose last connection here ended. uthash keeps the order of insertion, which is that of
// due_ms.
struct offline_user {
    UT_hash_handle hh;
    int64_t due_ms;
    bool manual_away;
    char user_id[EVENT_ID_SIZE];
};

static int64_t connections_count(const struct user *user)
{
    int64_t count = 0;
    LIST_FOREACH(link, &user->connections)
    {
        count++;
    }
    return count;
}

void presence_enter(struct user *user, struct gateway *gateway)
{
    const struct presence_change change = {.op = PRESENCE_ON,
                                           .user_id = user->id,
                                           .device = gateway->device,
                                           .connections = connections_count(user),
                                           .ttl_s = gateway->options.settings.presence_ttl_s,
                                           .manual_away = user->manual_away};
    user->presence_ms = loop_now_ms(gateway->loop);
    presence_apply(gateway->cache, &change, NULL, NULL);
}

static void offline_user_free(struct gateway *gateway, struct offline_user *offline)
{
    HASH_DEL(gateway->offline_users, offline);
    free(offline);
}

void presence_leave(const struct user *user, struct gateway *gateway)
{
    struct offline_user *offline;
    HASH_FIND_STR(gateway->offline_users, user->id, offline);
    if (offline)
        offline_user_free(gateway, offline); // had come back, and leaves again
    offline = gateway->ended ? NULL : calloc(1, sizeof *offline);
    if (!offline)
        return; // the entry in Redis expires by itself
    offline->due_ms = loop_now_ms(gateway->loop) + gateway->options.settings.presence_grace_ms;
    offline->manual_away = user->manual_away;
    snprintf(offline->user_id, sizeof offline->user_id, "%s", user->id);
    HASH_ADD_STR(gateway->offline_users, user_id, offline);
    presence_report_offline(gateway);
}

static void offline_user_report(struct gateway *gateway, const struct offline_user *offline)
{
    const struct presence_change change = {.op = PRESENCE_OFF,
                                           .user_id = offline->user_id,
                                           .device = gateway->device,
                                           .ttl_s = gateway->options.settings.presence_ttl_s,
                                           .manual_away = offline->manual_away};
    if (!user_find(gateway, offline->user_id))
        presence_apply(gateway->cache, &change, NULL, NULL);
}

void presence_report_offline(struct gateway *gateway)
{
    int64_t now_ms = loop_now_ms(gateway->loop);
    struct offline_user *offline, *next;
    HASH_ITER(hh, gateway->offline_users, offline, next)
    {
        if (offline->due_ms > now_ms)
            return;
        offline_user_report(gateway, offline);
        offline_user_free(gateway, offline);
    }
}

void presence_refresh(struct gateway *gateway)
{
    int64_t every_ms = gateway->options.settings.presence_ttl_s * 1000 / REFRESHES_A_TTL;
    int64_t now_ms = loop_now_ms(gateway->loop);
    for (struct user *user = gateway->users; user; user = user->hh.next)
        if (now_ms - user->presence_ms >= every_ms)
            presence_enter(user, gateway);
}

void presence_forget(struct gateway *gateway)
{
    for (struct user *user = gateway->users; user; user = user->hh.next)
        user->presence_ms = INT64_MIN / 2;
}

void presence_free(struct gateway *gateway)
{
    struct offline_user *offline, *next;
    HASH_ITER(hh, gateway->offline_users, offline, next)
    {
        offline_user_free(gateway, offline);
    }
}
