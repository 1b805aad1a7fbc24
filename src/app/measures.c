// SPDX-License-Identifier: Apache-2.0
// Reads measurements of Postgres (clock, outbox depth, oldest snapshot, hot channels, deadlocks)
// into metrics.
#include "measures.h"

#include "base/clock.h"
#include "base/metrics.h"

#include <stdio.h>
#include <string.h>

// Measuring takes at most a fiftieth of the time, unless it is very slow.
enum { COST_FACTOR = 50, PAUSE_MAX_MS = 10000 };

static const struct statement OUTBOX = {"outbox_depth",
                                        "SELECT count, oldest_s FROM outbox_depth()"};
static const struct statement SNAPSHOT = {
    "snapshot_oldest", "SELECT age_s, held, hot_channels FROM snapshot_oldest()"};

// Counts the time while its next step is blocked, too.
static const struct statement MONTH = {
    "month_age", "SELECT coalesce(extract(epoch FROM clock_timestamp() - min(began)), 0)::bigint"
                 " FROM month_expiring"};

static const struct statement DEADLOCKS = {
    "deadlocks", "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"};

static const struct statement CLOCK = {"clock_note", "SELECT ahead_s, hold_s FROM clock_note()"};

static int clock_measure(struct session *session)
{
    CLEANUP_RESULT struct result *result = NULL;
    int r = session_call(session, &CLOCK, NULL, &result);

    if (r < 0)
        return r;
    metric_set(METRIC_CLOCK_AHEAD_S, result_int(result, 0, 0));
    metric_set(METRIC_CLOCK_HOLD_S, result_int(result, 0, 1));
    return 0;
}

static int outbox_measure(struct session *session)
{
    CLEANUP_RESULT struct result *result = NULL;
    int r = session_call(session, &OUTBOX, NULL, &result);

    if (r < 0)
        return r;
    metric_set(METRIC_OUTBOX_ROWS, result_int(result, 0, 0));
    metric_set(METRIC_OUTBOX_OLDEST_S, result_int(result, 0, 1));
    return 0;
}

static int64_t held_age_s(struct measures *measures, const char *held)
{
    int64_t now_ms = clock_monotonic_ms();

    if (held[0] == '\0' || strcmp(held, measures->held) != 0) {
        snprintf(measures->held, sizeof measures->held, "%s", held);
        measures->held_ms = now_ms;
    }
    return (now_ms - measures->held_ms) / 1000;
}

static int snapshot_measure(struct measures *measures, struct session *session)
{
    CLEANUP_RESULT struct result *result = NULL;
    int r = session_call(session, &SNAPSHOT, NULL, &result);

    if (r < 0)
        return r;
    int64_t age_s = result_int(result, 0, 0);
    int64_t held_s = held_age_s(measures, result_text(result, 0, 1));
    measures->heat->snapshot_s = held_s > age_s ? held_s : age_s;
    measures->heat->channels = result_int(result, 0, 2);
    metric_set(METRIC_SNAPSHOT_OLDEST_S, measures->heat->snapshot_s);
    metric_set(METRIC_HOT_CHANNELS, measures->heat->channels);
    return 0;
}

static int month_measure(struct session *session)
{
    CLEANUP_RESULT struct result *result = NULL;
    int r = session_call(session, &MONTH, NULL, &result);

    if (r >= 0)
        metric_set(METRIC_MONTH_EXPIRING_S, result_int(result, 0, 0));
    return r;
}

static int deadlocks_measure(struct session *session)
{
    CLEANUP_RESULT struct result *result = NULL;
    int r = session_call(session, &DEADLOCKS, NULL, &result);

    if (r >= 0)
        metric_set(METRIC_DEADLOCKS, result_int(result, 0, 0));
    return r;
}

int measures_take(struct measures *measures, struct session *session)
{
    int64_t began_ms = clock_monotonic_ms();

    if (began_ms < measures->due_ms)
        return 0;
    int r = clock_measure(session);
    if (r >= 0)
        r = outbox_measure(session);
    if (r >= 0)
        r = snapshot_measure(measures, session);
    if (r >= 0)
        r = month_measure(session);
    if (r >= 0)
        r = deadlocks_measure(session);
    int64_t now_ms = clock_monotonic_ms();
    int64_t pause_ms = COST_FACTOR * (now_ms - began_ms);
    measures->due_ms = now_ms + (pause_ms < PAUSE_MAX_MS ? pause_ms : PAUSE_MAX_MS);
    return r;
}
