// SPDX-License-Identifier: Apache-2.0
// channels.markAll: marks everything as read and notifies all of the user's devices.
#include "methods.h"

#include "base/check.h"
#include "base/id.h"
#include "gateway/gateway.h"
#include "unread/sidebar.h"

#include <stdlib.h>
#include <string.h>

static const struct statement MARK_ALL = {"mark_all", "SELECT changed, told, thread_mentions"
                                                      " FROM mark_all($1, $2, $3, $4, $5)"};
static const struct statement MARK_UNTIL = {
    "mark_until", "SELECT changed, told FROM mark_until($1, $2, $3, $4, $5, nullif($6, -1),"
                  " ROW($7::xid8, $8::xid8, $9, $10, $11, $12, $13))"};
enum { COLUMN_CHANGED, COLUMN_TOLD, COLUMN_THREAD_MENTIONS };

struct marking_all {
    uint32_t tag;
    unsigned types; // bits 1 << enum channel_type
    bool is_bounded;
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
    // Without a bound all is read now: 100,000 rows would add nothing.
    if (marking->types == TYPES_ALL && !marking->is_bounded) {
        struct sidebar_totals totals = {.badge = result_int(result, 0, COLUMN_THREAD_MENTIONS)};
        marking_reply(invocation, &totals);
        return;
    }
    int r =
        sidebar_read(invocation->api->options.sidebar, invocation->actor, totals_read, invocation);
    if (r < 0)
        invocation_fail(invocation, r);
}

// The end of what is marked: a ts, or a position.
struct until {
    int64_t ts; // -1: a position
    struct gateway_covered covered;
};

// A ts has digits and a dot; a position begins with a letter.
static bool take_until(struct invocation *invocation, bool *ret_is_given, struct until *ret_until)
{
    const char *text = NULL;

    *ret_until = (struct until){.ts = -1};
    if (!take_optional_word(invocation, "until", &text))
        return false;
    *ret_is_given = text != NULL;
    if (!text || ts_parse(text, strlen(text), &ret_until->ts) == 0)
        return true;
    bool is_position = text[0] >= 'a' && text[0] <= 'z' && text[1] >= '0' && text[1] <= '9';
    int r = !is_position
                ? -ERROR_INVALID_TIMESTAMP
                : gateway_position_covers(invocation->api->options.gateway,
                                          invocation->actor->user_id, text, &ret_until->covered);
    if (r < 0)
        invocation_fail_message(invocation, r,
                                "until: must be a ts such as 1717200000.123456, or a position");
    return r == 0;
}

static void until_params(struct params *params, const struct until *until)
{
    const struct gateway_covered *covered = &until->covered;

    params_int(params, until->ts);
    params_xid(params, covered->xid);
    params_xid(params, covered->later_xid);
    params_text(params, covered->channel_id);
    params_int(params, covered->is_after_events);
    params_int(params, covered->seq);
    params_open_text_array(params);
    for (int i = 0; i < covered->beyond_count; i++)
        params_element_text(params, covered->beyond[i].channel_id);
    params_close_array(params);
    params_open_int_array(params);
    for (int i = 0; i < covered->beyond_count; i++)
        params_element_int(params, covered->beyond[i].seq);
    params_close_array(params);
}

void channels_mark_all(struct invocation *invocation)
{
    struct params params = {0};
    struct until until;
    bool threads = false;
    struct marking_all *marking = TAGGED_NEW(marking_all);

    if (!marking) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    invocation->state = marking;
    marking->types = TYPES_ALL;
    if (!take_optional_bool(invocation, "threads", &threads) ||
        !take_optional_types(invocation, &marking->types) ||
        !take_until(invocation, &marking->is_bounded, &until))
        return;
    invocation_change_params(invocation, &params);
    params_int(&params, marking->types);
    params_bool(&params, threads);
    if (marking->is_bounded)
        until_params(&params, &until);
    invocation_query(invocation, STORE_MANY, marking->is_bounded ? &MARK_UNTIL : &MARK_ALL, &params,
                     marked_all);
}
