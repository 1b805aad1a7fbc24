// SPDX-License-Identifier: Apache-2.0
// Statements for devices' turns, except taking them.
#include "device_turns.h"

#include "base/check.h"
#include "base/error.h"
#include "base/metrics.h"
#include "chat/workspace_ids.h"
#include "post_stretches.h"

#include <stdio.h>
#include <string.h>

// A job is kept while its notification may be on the screen: so that it can be withdrawn.
enum { KEEP_S = 3600, SHOWN_KEEP_S = 604800, CLEAN_MAX = 1000 };

static const struct statement ADD = {
    "pushes_add", "SELECT added, dropped FROM pushes_add($1, $2, $3, $4, $5, $6, $7)"};
static const struct statement HOLD = {"pushes_hold", "SELECT pushes_hold($1, $2, $3, $4, $5)"};
static const struct statement SETTLE = {
    "pushes_settle", "SELECT dead FROM pushes_settle($1, $2, $3, $4, $5, $6, $7, $8, $9)"};
static const struct statement WORKSPACES = {"push_workspaces",
                                            "SELECT workspace FROM push_workspaces()"};
static const struct statement MET = {"push_workspace_met",
                                     "SELECT added FROM push_workspace_met($1, $2)"};
static const struct statement DEPTH = {
    "pushes_waiting", "SELECT waiting, oldest_s::bigint, dead FROM pushes_waiting()"};
static const struct statement CLEAN = {"pushes_clean",
                                       "SELECT has_more FROM pushes_clean($1, $2, $3, $4)"};

void device_turn_free(struct device_turn *turn)
{
    if (!turn)
        return;
    notify_push_free(turn->push);
    free(turn->user_id);
    free(turn->app);
    free(turn->device_id);
    free(turn->channel_id);
    free(turn->kind);
    TAGGED_FREE(turn);
}

int device_turns_add(struct session *session, struct event **events, size_t count, int64_t room)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};

    count = post_stretches_reduce(events, count);
#define COLUMN(type, value)                                                                        \
    params_open_##type##_array(&params);                                                           \
    for (struct event *const *event = events; event < events + count; event++)                     \
        params_element_##type(&params, value);                                                     \
    params_close_array(&params)
    COLUMN(text, event_kind_name((*event)->kind));
    COLUMN(text, (*event)->workspace_id);
    COLUMN(text, (*event)->channel_id);
    COLUMN(int, (*event)->seq);
    COLUMN(int, (*event)->ts);
    COLUMN(text, (*event)->user_id);
#undef COLUMN
    params_int(&params, room);
    int r = session_call(session, &ADD, &params, &result);
    if (r < 0)
        return r;
    metric_add(METRIC_NOTIFY_NO_ROOM, result_int(result, 0, 1));
    return (int)result_int(result, 0, 0);
}

// One column of an array parameter: `value` of each turn in the list.
#define COLUMN(params, type, turns, value)                                                         \
    params_open_##type##_array(params);                                                            \
    LIST_FOREACH(link, turns)                                                                      \
    {                                                                                              \
        const struct device_turn *turn = LIST_ITEM(link, struct device_turn, link);                \
        params_element_##type(params, value);                                                      \
    }                                                                                              \
    params_close_array(params)

// Adds the devices and their leases.
static void place_params(struct params *params, const struct list *turns)
{
    COLUMN(params, text, turns, turn->user_id);
    COLUMN(params, text, turns, turn->app);
    COLUMN(params, text, turns, turn->device_id);
    COLUMN(params, int, turns, turn->lease);
}

static const char *outcome_of(const struct device_turn *turn)
{
    return turn->is_skipped ? "skipped" : notify_outcome_name(turn->answer.outcome);
}

int device_turns_settle(struct session *session, const struct list *settled,
                        const struct device_turns_options *options)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};

    place_params(&params, settled);
    COLUMN(&params, int, settled, turn->held_s);
    COLUMN(&params, text, settled, outcome_of(turn));
    COLUMN(&params, int, settled, turn->answer.wait_ms);
    COLUMN(&params, text, settled, turn->answer.reason);
    params_int(&params, options->pause_ms);
    int r = session_call(session, &SETTLE, &params, &result);
    if (r >= 0)
        metric_add(METRIC_NOTIFY_DIED, result_int(result, 0, 0));
    return r;
}

// Moves the turns whose lease is due for renewal to `ret_due`. Returns their number.
static int due_split(struct list *under_way, int64_t now_ms, struct list *ret_due)
{
    int count = 0;

    LIST_FOREACH(link, under_way)
    {
        struct device_turn *turn = LIST_ITEM(link, struct device_turn, link);
        if (turn->hold_at_ms > now_ms)
            continue;
        list_remove(link);
        list_append(ret_due, link);
        count++;
    }
    return count;
}

int device_turns_hold(struct session *session, struct list *under_way, int64_t now_ms,
                      const struct device_turns_options *options)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};
    struct list due;

    list_init(&due);
    if (due_split(under_way, now_ms, &due) == 0)
        return 0;
    place_params(&params, &due);
    params_int(&params, options->lease_ms);
    LIST_FOREACH(link, &due)
    {
        LIST_ITEM(link, struct device_turn, link)->hold_at_ms = now_ms + options->lease_ms / 3;
    }
    list_append_all(under_way, &due);
    return session_call(session, &HOLD, &params, &result);
}

int device_turns_workspaces(struct session *session, struct buffer *ids)
{
    return workspace_ids_read(session, &WORKSPACES, ids);
}

int device_turns_met(struct session *session, const char *workspace_id, int64_t within_s)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};

    params_text(&params, workspace_id);
    params_int(&params, within_s);
    return session_call(session, &MET, &params, &result);
}

int device_turns_depth(struct session *session, struct device_turns_depth *ret_depth)
{
    CLEANUP_RESULT struct result *result = NULL;
    int r = session_call(session, &DEPTH, NULL, &result);

    if (r >= 0)
        *ret_depth = (struct device_turns_depth){.waiting = result_int(result, 0, 0),
                                                 .oldest_s = result_int(result, 0, 1),
                                                 .dead = result_int(result, 0, 2)};
    return r;
}

int device_turns_clean(struct session *session, int64_t dead_keep_s)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};

    params_int(&params, KEEP_S);
    params_int(&params, SHOWN_KEEP_S);
    params_int(&params, dead_keep_s);
    params_int(&params, CLEAN_MAX);
    int r = session_call(session, &CLEAN, &params, &result);
    return r < 0 ? r : result_bool(result, 0, 0);
}
