// SPDX-License-Identifier: Apache-2.0
// events.sync: the events of all the caller's channels since a position.
#include "methods.h"

#include "base/check.h"
#include "gateway/gateway.h"

enum { LIMIT_DEFAULT = 200, LIMIT_MAX = 1000 };

static void array_write(struct json_writer *w, const char *key, const char *members, size_t length)
{
    json_key(w, key);
    json_open_array(w);
    if (length > 0)
        json_raw(w, members, length);
    json_close_array(w);
}

static void synced(void *arg, int r, const struct gateway_missed *missed)
{
    struct invocation *invocation = CAST(invocation, arg);

    if (r < 0) {
        invocation_fail(invocation, r);
        return;
    }
    struct json_writer *w = invocation_open(invocation);
    array_write(w, "events", missed->events, missed->events_length);
    json_key(w, "users_changed");
    json_raw(w, missed->users, missed->users_length);
    json_key_string(w, "position", missed->position);
    json_key_bool(w, "has_more", missed->has_more);
    if (missed->is_too_old)
        array_write(w, "gaps", "null", 4);
    else
        array_write(w, "gaps", missed->gaps, missed->gaps_length);
    invocation_close(invocation);
}

void events_sync(struct invocation *invocation)
{
    const char *since;
    int64_t limit = LIMIT_DEFAULT;

    if (!take_text(invocation, "since", &since) || !take_limit(invocation, LIMIT_MAX, &limit))
        return;
    int r = gateway_sync(invocation->api->options.gateway, invocation->actor, since, limit, synced,
                         invocation);
    if (r == -ERROR_INVALID_POSITION)
        invocation_fail_message(invocation, r, "since: must be a position from an earlier reply");
    else if (r < 0)
        invocation_fail(invocation, r);
}
