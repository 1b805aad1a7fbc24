// SPDX-License-Identifier: Apache-2.0
// Accounts for the bytes of bodies and replies in memory, per loop and per user, against their
// limits.
#include "call/intake.h"

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>

struct intake_owner {
    char id[ID_SIZE];
    UT_hash_handle hh;
    int64_t bytes;
};

static struct intake_owner *owner_find(struct intake *intake, const char *id)
{
    struct intake_owner *owner;
    HASH_FIND_STR(intake->owners, id, owner);
    return owner;
}

static int owner_add(struct intake *intake, const char *id, int64_t bytes)
{
    struct intake_owner *owner = owner_find(intake, id);
    if (!owner) {
        owner = calloc(1, sizeof *owner);
        if (!owner)
            return -ERROR_MEMORY;
        snprintf(owner->id, sizeof owner->id, "%s", id);
        HASH_ADD_STR(intake->owners, id, owner);
    }
    owner->bytes += bytes;
    return 0;
}

static void owner_remove(struct intake *intake, const char *id, int64_t bytes)
{
    struct intake_owner *owner = owner_find(intake, id);
    if (!owner)
        return;
    owner->bytes -= bytes;
    if (owner->bytes > 0)
        return;
    HASH_DEL(intake->owners, owner);
    free(owner);
}

static bool owner_has_room(struct intake *intake, const char *id, int64_t bytes)
{
    const struct intake_owner *owner = owner_find(intake, id);
    int64_t max = id[0] == '\0' ? intake->strangers_bytes_max : intake->owner_bytes_max;
    if (!owner || owner->bytes + bytes <= max)
        return true;
    metric_add(id[0] == '\0' ? intake->refused_strangers : intake->refused_owner, 1);
    return false;
}

int intake_take(struct intake *intake, const char *owner, int64_t bytes)
{
    if (intake->bytes + bytes > intake->bytes_max) {
        metric_add(intake->refused_all, 1);
        return -ERROR_BUSY;
    }
    return intake_take_small(intake, owner, bytes);
}

int intake_take_small(struct intake *intake, const char *owner, int64_t bytes)
{
    ASSERT(bytes >= 0 && strlen(owner) < ID_SIZE);
    if (!owner_has_room(intake, owner, bytes))
        return -ERROR_RATELIMITED;
    int r = owner_add(intake, owner, bytes);
    if (r < 0)
        return r;
    intake->bytes += bytes;
    metric_add(intake->gauge, bytes);
    return 0;
}

void intake_give(struct intake *intake, const char *owner, int64_t bytes)
{
    ASSERT(bytes >= 0 && intake->bytes >= bytes);
    owner_remove(intake, owner, bytes);
    intake->bytes -= bytes;
    metric_add(intake->gauge, -bytes);
}

int intake_move(struct intake *intake, const char *from, const char *to, int64_t bytes)
{
    if (!owner_has_room(intake, to, bytes))
        return -ERROR_RATELIMITED;
    int r = owner_add(intake, to, bytes);
    if (r < 0)
        return r;
    owner_remove(intake, from, bytes);
    return 0;
}
