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
struct gone {
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

static void gone_free(struct gateway *gateway, struct gone *gone)
{
    HASH_DEL(gateway->gone, gone);
    free(gone);
}

void presence_leave(const struct user *user, struct gateway *gateway)
{
    struct gone *gone;
    HASH_FIND_STR(gateway->gone, user->id, gone);
    if (gone)
        gone_free(gateway, gone); // had come back, and leaves again
    gone = gateway->ended ? NULL : calloc(1, sizeof *gone);
    if (!gone)
        return; // the entry in Redis expires by itself
    gone->due_ms = loop_now_ms(gateway->loop) + gateway->options.settings.presence_grace_ms;
    gone->manual_away = user->manual_away;
    snprintf(gone->user_id, sizeof gone->user_id, "%s", user->id);
    HASH_ADD_STR(gateway->gone, user_id, gone);
    presence_tend(gateway);
}

static void gone_tell(struct gateway *gateway, const struct gone *gone)
{
    const struct presence_change change = {.op = PRESENCE_OFF,
                                           .user_id = gone->user_id,
                                           .device = gateway->device,
                                           .ttl_s = gateway->options.settings.presence_ttl_s,
                                           .manual_away = gone->manual_away};
    if (!user_find(gateway, gone->user_id))
        presence_apply(gateway->cache, &change, NULL, NULL);
}

void presence_tend(struct gateway *gateway)
{
    int64_t now_ms = loop_now_ms(gateway->loop);
    struct gone *gone, *next;
    HASH_ITER(hh, gateway->gone, gone, next)
    {
        if (gone->due_ms > now_ms)
            return;
        gone_tell(gateway, gone);
        gone_free(gateway, gone);
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
    struct gone *gone, *next;
    HASH_ITER(hh, gateway->gone, gone, next)
    {
        gone_free(gateway, gone);
    }
}
