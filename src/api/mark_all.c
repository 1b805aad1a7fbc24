// SPDX-License-Identifier: Apache-2.0
// channels.markAll: marks everything as read and notifies all of the user's devices.
#include "methods.h"

#include "base/check.h"
#include "unread/sidebar.h"

#include <stdlib.h>

static const struct statement MARK_ALL = {"mark_all", "SELECT changed, told, thread_mentions"
                                                      " FROM mark_all($1, $2, $3, $4, $5)"};
enum { COLUMN_CHANGED, COLUMN_TOLD, COLUMN_THREAD_MENTIONS };

struct marking_all {
    uint32_t tag;
    unsigned types; // bits 1 << enum channel_type
    int64_t changed;
};

static void marking_reply(struct invocation *invocation, const struct sidebar_totals *totals)
{
    const struct marking_all *marking = CAST(marking_all, invocation->state);
    struct json_writer *w = invocation_open(invocation);

    json_key_int(w, "channels", marking->changed);
    sidebar_totals_write(w, totals);
    invocation_close(invocation);
}

static void totals_read(void *arg, int r, const struct sidebar_state *state)
{
    struct invocation *invocation = CAST(invocation, arg);

    if (r < 0) {
        invocation_fail(invocation, r);
        return;
    }
    struct sidebar_totals totals = sidebar_totals_of(state);
    sidebar_release(state);
    marking_reply(invocation, &totals);
}

static void marked_all(struct invocation *invocation, const struct result *result)
{
    struct marking_all *marking = CAST(marking_all, invocation->state);

    marking->changed = result_int(result, 0, COLUMN_CHANGED);
    for (int64_t part = 0; part < result_int(result, 0, COLUMN_TOLD); part++)
        invocation_submit(invocation, part);
    if (marking->types == TYPES_ALL) { // all is read now: 100,000 rows would add nothing
        struct sidebar_totals totals = {.badge = result_int(result, 0, COLUMN_THREAD_MENTIONS)};
        marking_reply(invocation, &totals);
        return;
    }
    int r =
        sidebar_read(invocation->api->options.sidebar, invocation->actor, totals_read, invocation);
    if (r < 0)
        invocation_fail(invocation, r);
}

void channels_mark_all(struct invocation *invocation)
{
    struct params params = {0};
    bool threads = false;
    struct marking_all *marking = TAGGED_NEW(marking_all);

    if (!marking) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    invocation->state = marking;
    marking->types = TYPES_ALL;
    if (!take_optional_bool(invocation, "threads", &threads) ||
        !take_optional_types(invocation, &marking->types))
        return;
    invocation_change_params(invocation, &params);
    params_int(&params, marking->types);
    params_bool(&params, threads);
    invocation_query(invocation, STORE_MANY, &MARK_ALL, &params, marked_all);
}
