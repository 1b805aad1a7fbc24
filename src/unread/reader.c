// SPDX-License-Identifier: Apache-2.0
// Determines a member's unread count: from the rows and Redis where they agree, otherwise by
// counting in Postgres.
#include "unread/reader.h"

#include "base/check.h"
#include "base/error.h"
#include "base/list.h"
#include "base/metrics.h"
#include "unread/keys.h"
#include "unread/strategy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct statement UNREAD = {
    "unread",
    "SELECT " UNREAD_VIEW_SELECT(
        "r") ", c.deleted_ord FROM unread_rows r JOIN channels c ON c.id = r.channel_id"
             " WHERE r.channel_id = $1 AND r.user_id = $2",
};

// The newest unread messages, at most $3, and the state they belong to, from the same snapshot.
static const struct statement MESSAGES = {
    "unread_messages",
    "SELECT " UNREAD_VIEW_SELECT(
        "r") ", x.tss, x.seqs FROM unread_rows r CROSS JOIN LATERAL (SELECT array_agg(o.ts) AS "
             "tss, array_agg(o.seq) AS seqs FROM (SELECT m.ts, m.seq FROM messages m WHERE "
             "m.channel_id = $1 AND m.ts > r.ts AND m.counted AND NOT m.deleted AND m.user_id <> "
             "$2 AND NOT EXISTS (SELECT 1 FROM read_messages s WHERE s.channel_id = $1 AND "
             "s.user_id = $2 AND s.ts = m.ts) ORDER BY m.ts DESC LIMIT $3) o) x"
             " WHERE r.channel_id = $1 AND r.user_id = $2"};

enum { MESSAGES_MAX = 128 };

struct reader {
    struct store *store;
    struct cache *cache;
    int rebuilds_max;
    struct list rebuilds; // in flight
    int rebuild_count;
};

// A state being read from Postgres for Redis; at most one per channel and member.
struct rebuild {
    uint32_t tag;
    struct list link;
    struct reader *reader;
    char channel_id[EVENT_ID_SIZE];
    char user_id[EVENT_ID_SIZE];
};

// A known count, to be compared with the strategy's count of the same state.
struct check {
    uint32_t tag;
    struct reader *reader;
    struct unread_view view;
};

struct reading {
    uint32_t tag;
    struct reader *reader;
    struct unread_view *view;
    unread_read_fn *fn;
    void *arg;
    // For `sequence`:
    int asked;     // replies of Redis outstanding, in any order: one may be an error
    bool matches;  // Redis has the same member state as the caller
    int64_t count; // from the channel's head in Redis
};

static void reading_end(struct reading *reading, int r)
{
    reading->fn(reading->arg, r);
    TAGGED_FREE(reading);
}

static void channel_install(struct reading *reading, int64_t deleted_ord)
{
    const struct event_head *head = &reading->view->head;
    // The deletes at or below deleted_ord are not listed, so cursors before it are counted by
    // Postgres.
    const int64_t numbers[] = {head->seq, head->ord, deleted_ord};
    char texts[3][KEY_NUMBER_SIZE];
    char key[KEY_SIZE];

    for (size_t i = 0; i < 3; i++)
        snprintf(texts[i], sizeof texts[i], "%" PRId64, numbers[i]);
    key_channel(key, reading->view->channel_id);
    const char *const arguments[] = {"FCALL",  "channel_install", "1",      key,
                                     texts[0], texts[1],          texts[2], ""};
    cache_call(reading->reader->cache, sizeof arguments / sizeof arguments[0], arguments, NULL,
               NULL, NULL);
}

static void copy_repair(struct reading *reading, int64_t deleted_ord)
{
    struct member_call call;

    if (!cache_is_up(reading->reader->cache))
        return;
    metric_add(METRIC_CACHE_REBUILDS, 1);
    channel_install(reading, deleted_ord);
    member_call_make(&call, reading->view->user_id, reading->view->channel_id,
                     &reading->view->member);
    cache_call(reading->reader->cache, MEMBER_CALL_ARGUMENTS, call.texts, NULL, NULL, NULL);
}

static void view_install(struct reader *reader, const struct unread_view *view, const int64_t *tss,
                         const int64_t *seqs, int count)
{
    const struct strategy_ops *ops = strategy_find(view->head.strategy);
    UNZEROED struct fcall call;

    if (!ops || !ops->rebuild || !view->member.active ||
        !ops->rebuild(&call, view, tss, seqs, count))
        return;
    fcall_end(&call);
    metric_add(METRIC_CACHE_REBUILDS, 1);
    cache_call(reader->cache, call.count, call.texts, NULL, NULL, NULL);
}

static void messages_answer(void *arg, const struct store_outcome *outcome)
{
    struct rebuild *rebuild = CAST(rebuild, arg);
    struct reader *reader = rebuild->reader;
    int64_t tss[MESSAGES_MAX], seqs[MESSAGES_MAX];
    struct unread_view view;

    list_remove(&rebuild->link);
    reader->rebuild_count--;
    TAGGED_FREE(rebuild);
    if (outcome->r < 0 || result_rows(outcome->result) == 0)
        return;
    unread_view_read(outcome->result, 0, 0, &view);
    int count = result_ints(outcome->result, 0, UNREAD_VIEW_COLUMNS, tss, MESSAGES_MAX);
    result_ints(outcome->result, 0, UNREAD_VIEW_COLUMNS + 1, seqs, MESSAGES_MAX);
    if (cache_is_up(reader->cache))
        view_install(reader, &view, tss, seqs, count);
}

static bool is_under_way(const struct reader *reader, const struct unread_view *view)
{
    LIST_FOREACH(link, &reader->rebuilds)
    {
        const struct rebuild *rebuild = LIST_ITEM(link, struct rebuild, link);
        if (strcmp(rebuild->user_id, view->user_id) == 0 &&
            strcmp(rebuild->channel_id, view->channel_id) == 0)
            return true;
    }
    return false;
}

static void messages_ask(struct reader *reader, const struct unread_view *view)
{
    struct params params = {0};
    struct rebuild *rebuild;

    if (is_under_way(reader, view))
        return;
    rebuild = reader->rebuild_count < reader->rebuilds_max ? calloc(1, sizeof *rebuild) : NULL;
    if (!rebuild) {
        metric_add(METRIC_CACHE_REBUILDS_LEFT, 1);
        return;
    }
    rebuild->tag = TAG(rebuild);
    rebuild->reader = reader;
    memcpy(rebuild->channel_id, view->channel_id, sizeof rebuild->channel_id);
    memcpy(rebuild->user_id, view->user_id, sizeof rebuild->user_id);
    list_append(&reader->rebuilds, &rebuild->link);
    reader->rebuild_count++;
    params_text(&params, view->channel_id);
    params_text(&params, view->user_id);
    params_int(&params, unread_cap() + 1);
    store_call(reader->store, STORE_READ, &MESSAGES, &params, messages_answer, rebuild);
}

// Writes to Redis what it lacks; the count of `view` is correct.
static void view_rebuild(struct reader *reader, const struct unread_view *view)
{
    const struct strategy_ops *ops = strategy_find(view->head.strategy);

    if (!ops || !ops->rebuild || !cache_is_up(reader->cache))
        return;
    if (ops->rebuilds_messages)
        messages_ask(reader, view);
    else
        view_install(reader, view, NULL, NULL, 0);
}

static void truth_answer(void *arg, const struct store_outcome *outcome)
{
    struct reading *reading = CAST(reading, arg);

    if (outcome->r == 0 && result_rows(outcome->result) > 0) {
        unread_view_read(outcome->result, 0, 0, reading->view);
        if (reading->view->head.strategy == STRATEGY_SEQUENCE)
            copy_repair(reading, result_int(outcome->result, 0, UNREAD_VIEW_COLUMNS));
        else
            view_rebuild(reading->reader, reading->view);
    }
    reading_end(reading, outcome->r);
}

static void truth_ask(struct reading *reading)
{
    struct params params = {0};

    metric_add(METRIC_CACHE_FALLBACKS, 1);
    params_text(&params, reading->view->channel_id);
    params_text(&params, reading->view->user_id);
    store_call(reading->reader->store, STORE_READ, &UNREAD, &params, truth_answer, reading);
}

static void sequence_take(struct reading *reading)
{
    if (--reading->asked > 0)
        return;
    if (reading->count == STRATEGY_UNKNOWN || !reading->matches) {
        truth_ask(reading);
        return;
    }
    reading->view->unread = reading->count;
    reading_end(reading, 0);
}

// The reply to HMGET channel-latest:{C} seq deleted_floor deleted. Without ord: events that were
// read back combine an earlier seq with a later ord, and the caller has its own.
static void channel_answer(void *arg, int r, const struct cache_value *value)
{
    struct reading *reading = CAST(reading, arg);

    reading->count = strategy_sequence_count(reading->view, r, value);
    sequence_take(reading);
}

// HGET read_cursor:{U} C: "epoch ts seq ord own member_seq active"; an `active` with a ? marks
// lower bounds only. The member's total number of posts is not included: it comes from Postgres
// with the other rows.
static bool member_matches(const struct reading *reading, const char *packed)
{
    const struct event_member *known = &reading->view->member;
    struct event_member copy = *known;
    char active[4] = ""; // later releases may append fields

    if (sscanf(
            packed, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %3s",
            &copy.epoch, &copy.ts, &copy.seq, &copy.ord, &copy.own, &copy.member_seq, active) != 7)
        return false;
    if (strcmp(active, "1") != 0 || copy.epoch != known->epoch || copy.ts != known->ts)
        return false;
    // Retention by an instance of 0.2.0 changes ord and own of the row, but not its ts, so this
    // copy is kept.
    return copy.ord == known->ord && copy.own == known->own;
}

static void member_answer(void *arg, int r, const struct cache_value *value)
{
    struct reading *reading = CAST(reading, arg);

    reading->matches = r == 0 && member_matches(reading, cache_value_text(value));
    sequence_take(reading);
}

static void strategy_ask(const struct reader *reader, const struct strategy_ops *ops,
                         const struct unread_view *view, cache_fn *fn, void *arg)
{
    UNZEROED struct fcall call;

    ops->count(&call, view);
    fcall_end(&call);
    cache_call(reader->cache, call.count, call.texts, NULL, fn, arg);
}

// Above its cap, zset reports that there are more, not how many. Direct conversations need the
// exact number, which is also their number of mentions.
static bool is_too_short(const struct reading *reading, int64_t count)
{
    return channel_type_is_direct(reading->view->type) &&
           reading->view->head.strategy == STRATEGY_ZSET && count > unread_cap();
}

// The strategy's count of exactly the state read from Postgres.
static void strategy_answer(void *arg, int r, const struct cache_value *value)
{
    struct reading *reading = CAST(reading, arg);
    int64_t count = strategy_count_take(r, value);

    if (count == STRATEGY_UNKNOWN || is_too_short(reading, count)) {
        truth_ask(reading);
        return;
    }
    metric_add(METRIC_COUNTS_FROM_REDIS, 1);
    reading->view->unread = count;
    reading_end(reading, 0);
}

static void check_answer(void *arg, int r, const struct cache_value *value)
{
    struct check *check = CAST(check, arg);
    const struct unread_view *view = &check->view;
    int64_t count = strategy_count_take(r, value);
    // A bit does not record its cursor: a mark committed after the rows were read may have set it.
    // The audit reads such pairs again.
    bool differs = count != STRATEGY_UNKNOWN && view->head.strategy != STRATEGY_BITMAP &&
                   unread_differs(view->head.strategy, count, view->unread);

    if (differs)
        metric_add(METRIC_COUNTS_DRIFTED, 1);
    if (differs || count == STRATEGY_UNKNOWN)
        view_rebuild(check->reader, view);
    else
        metric_add(METRIC_COUNTS_FROM_REDIS, 1);
    TAGGED_FREE(check);
}

// Nobody waits for the result: the caller already has the count from Postgres.
static void check_ask(struct reader *reader, const struct unread_view *view,
                      const struct strategy_ops *ops)
{
    struct check *check = malloc(sizeof *check);

    if (!check)
        return;
    *check = (struct check){.tag = TAG(check), .reader = reader, .view = *view};
    strategy_ask(reader, ops, view, check_answer, check);
}

static void sequence_ask(struct reading *reading)
{
    char channel_key[KEY_SIZE];
    char cursor_key[KEY_SIZE];

    key_channel(channel_key, reading->view->channel_id);
    key_cursor(cursor_key, reading->view->user_id);
    reading->asked = 2;
    cache_call(reading->reader->cache, 5,
               (const char *const[]){"HMGET", channel_key, "seq", "deleted_floor", "deleted"}, NULL,
               channel_answer, reading);
    cache_call(reading->reader->cache, 3,
               (const char *const[]){"HGET", cursor_key, reading->view->channel_id}, NULL,
               member_answer, reading);
}

void unread_read(struct reader *reader, struct unread_view *view, bool exact, unread_read_fn *fn,
                 void *arg)
{
    ASSERT(fn);
    const struct strategy_ops *ops = strategy_find(view->head.strategy);
    bool asks = ops && ops->count && cache_is_up(reader->cache);

    if (exact) {
        if (asks)
            check_ask(reader, view, ops);
        fn(arg, 0);
        return;
    }
    struct reading *reading = calloc(1, sizeof *reading);
    if (!reading) {
        fn(arg, -ERROR_MEMORY);
        return;
    }
    *reading =
        (struct reading){.tag = TAG(reading), .reader = reader, .view = view, .fn = fn, .arg = arg};
    if (asks)
        strategy_ask(reader, ops, view, strategy_answer, reading);
    else if (!cache_is_up(reader->cache) || view->singles > 0 ||
             view->head.strategy != STRATEGY_SEQUENCE)
        truth_ask(reading);
    else
        sequence_ask(reading);
}

int reader_new(struct store *store, struct cache *cache, int rebuilds_max,
               struct reader **ret_reader)
{
    struct reader *reader = calloc(1, sizeof *reader);

    if (!reader)
        return -ERROR_MEMORY;
    *reader = (struct reader){.store = store, .cache = cache, .rebuilds_max = rebuilds_max};
    list_init(&reader->rebuilds);
    *ret_reader = reader;
    return 0;
}

void reader_free(struct reader *reader)
{
    free(reader);
}
