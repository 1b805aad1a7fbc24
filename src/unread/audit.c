// SPDX-License-Identifier: Apache-2.0
// Compares counts in Redis with Postgres and rewrites them: verify, rebuild, audit.
#include "unread/audit.h"

#include "base/check.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "unread/keys.h"
#include "unread/strategy.h"
#include "unread/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 500, MESSAGES_MAX = 128 };
enum { COLUMN_DELETED_ORD = UNREAD_VIEW_COLUMNS, COLUMN_TSS, COLUMN_SEQS, COLUMN_SINGLES };

// One statement per index, so that each finds its rows by it. OFFSET 0 keeps each member's row a
// separate lookup; a join would read all members of a channel for each of them. For zset, the
// newest unread messages are read in the same snapshot.
#define PAGE_SELECT(where)                                                                         \
    "WITH page AS MATERIALIZED (SELECT m.channel_id, m.user_id, m.singles FROM channel_members m " \
    "WHERE "                                                                                       \
    "m.active AND " where " ORDER BY m.channel_id, m.user_id LIMIT $4)"                            \
    " SELECT " UNREAD_VIEW_SELECT(                                                                 \
        "r") ", r.deleted_ord, x.tss, x.seqs, p.singles FROM page p CROSS JOIN LATERAL (SELECT "   \
             "u.*, "                                                                               \
             "c.deleted_ord FROM unread_rows u JOIN channels c ON c.id = u.channel_id WHERE "      \
             "u.channel_id = p.channel_id AND u.user_id = p.user_id OFFSET 0) r"                   \
             " LEFT JOIN LATERAL (SELECT array_agg(o.ts) AS tss, array_agg(o.seq) AS seqs FROM ("  \
             "SELECT n.ts, n.seq FROM messages n WHERE n.channel_id = r.channel_id AND n.ts > "    \
             "r.ts AND n.counted AND NOT n.deleted AND n.user_id <> r.user_id AND NOT EXISTS ("    \
             "SELECT 1 FROM read_messages s WHERE s.channel_id = n.channel_id AND s.user_id = "    \
             "r.user_id AND s.ts = n.ts) ORDER BY n.ts DESC LIMIT $5) o WHERE r.strategy_in_use "  \
             "= 1) x ON true ORDER BY r.channel_id, r.user_id"

// A page, and only the ids of its first pair: for one that cannot be read. $1, $2: last pair of the
// previous page; $3: the scope's id.
#define NEXT_SELECT(where)                                                                         \
    "SELECT m.channel_id, m.user_id FROM channel_members m WHERE m.active AND " where              \
    " ORDER BY m.channel_id, m.user_id LIMIT 1"
#define IN_ALL "$3 = '' AND (m.channel_id, m.user_id) > ($1, $2)"
#define IN_WORKSPACE                                                                               \
    "(m.channel_id, m.user_id) > ($1, $2) AND EXISTS (SELECT 1 FROM channels w WHERE "             \
    "w.id = m.channel_id AND (w.workspace_id = $3) IS TRUE)"
#define IN_CHANNEL "m.channel_id = $3 AND m.channel_id >= $1 AND m.user_id > $2"
#define OF_USER "m.user_id = $3 AND m.channel_id > $1 AND m.user_id >= $2"
struct audit_statements {
    struct statement page;
    struct statement next;
};
static const struct audit_statements ALL = {{"repair_page", PAGE_SELECT(IN_ALL)},
                                            {"repair_next", NEXT_SELECT(IN_ALL)}};
static const struct audit_statements WORKSPACE = {
    {"repair_page_workspace", PAGE_SELECT(IN_WORKSPACE)},
    {"repair_next_workspace", NEXT_SELECT(IN_WORKSPACE)}};
static const struct audit_statements CHANNEL = {{"repair_page_channel", PAGE_SELECT(IN_CHANNEL)},
                                                {"repair_next_channel", NEXT_SELECT(IN_CHANNEL)}};
static const struct audit_statements USER = {{"repair_page_user", PAGE_SELECT(OF_USER)},
                                             {"repair_next_user", NEXT_SELECT(OF_USER)}};
// The pair's current state, which may be newer than its page.
static const struct statement PAIR = {
    "repair_pair",
    "SELECT unread, head_seq FROM unread_rows WHERE channel_id = $1 AND user_id = $2 AND active"};
static const struct statement SIZE = {
    "repair_size",
    "SELECT CASE WHEN $3 <> '' THEN (SELECT count(*) FROM channel_members m WHERE m.user_id = $3 "
    "AND m.active) ELSE (SELECT coalesce(sum(c.member_count), 0) FROM channels c WHERE ($1 = '' OR "
    "c.workspace_id = $1) AND ($2 = '' OR c.id = $2)) END, "
    "($1 = '' OR EXISTS (SELECT 1 FROM workspaces WHERE id = $1)) AND "
    "($2 = '' OR EXISTS (SELECT 1 FROM channels WHERE id = $2)) AND "
    "($3 = '' OR EXISTS (SELECT 1 FROM users WHERE id = $3))"};

struct audit {
    uint32_t tag;
    const struct audit_options *options;
    struct audit_totals *totals;
    struct result *page; // the rows of the views
    int count;
    struct unread_view views[PAGE];
    int64_t counts[PAGE]; // the counts by Redis
    int next;             // the next of them to fill in
    struct fcall call;
};

static const struct audit_statements *scope_statements(const struct audit_scope *scope,
                                                       const char **ret_id)
{
    if (scope->user_id[0] != '\0') {
        *ret_id = scope->user_id;
        return &USER;
    }
    if (scope->channel_id[0] != '\0') {
        *ret_id = scope->channel_id;
        return &CHANNEL;
    }
    *ret_id = scope->workspace_id;
    return scope->workspace_id[0] != '\0' ? &WORKSPACE : &ALL;
}

// The last pair of a page, after which the next one begins.
struct audit_place {
    char channel_id[EVENT_ID_SIZE];
    char user_id[EVENT_ID_SIZE];
};

static const struct audit_statements *
place_params(const struct audit *audit, const struct audit_place *after, struct params *params)
{
    const char *id;
    const struct audit_statements *statements = scope_statements(&audit->options->scope, &id);

    params_text(params, after->channel_id);
    params_text(params, after->user_id);
    params_text(params, id);
    return statements;
}

static void place_set(struct audit_place *place, const char *channel_id, const char *user_id)
{
    snprintf(place->channel_id, sizeof place->channel_id, "%s", channel_id);
    snprintf(place->user_id, sizeof place->user_id, "%s", user_id);
}

// Reads the page that follows the place.
static int page_read(struct audit *audit, const struct audit_place *after, int64_t count)
{
    struct params params = {0};
    const struct audit_statements *statements = place_params(audit, after, &params);

    params_int(&params, count);
    params_int(&params, unread_cap() + 1);
    int r = session_call(audit->options->session, &statements->page, &params, &audit->page);
    if (r < 0)
        return r;
    audit->count = result_rows(audit->page);
    for (int i = 0; i < audit->count; i++)
        unread_view_read(audit->page, i, 0, &audit->views[i]);
    return 0;
}

// Advances to the next pair, without its counts. Stays if there is none.
static int pair_find(struct audit *audit, struct audit_place *place)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};
    const struct audit_statements *statements = place_params(audit, place, &params);

    int r = session_call(audit->options->session, &statements->next, &params, &result);
    if (r >= 0 && result_rows(result) > 0)
        place_set(place, result_text(result, 0, 0), result_text(result, 0, 1));
    return r;
}

// Passes over the pair that follows the place, which Postgres cannot count.
static int pair_pass_over(struct audit *audit, struct audit_place *place)
{
    int r = pair_find(audit, place);

    if (r >= 0)
        log_row_aside("unread", "rejected by Postgres", "counts of %s in %s", place->user_id,
                      place->channel_id);
    return r;
}

// Whether readers rely on Redis for the deletes after the cursor.
static bool is_by_deletes(const struct audit *audit, int i)
{
    const struct unread_view *view = &audit->views[i];

    return view->head.strategy == STRATEGY_SEQUENCE &&
           result_int(audit->page, i, COLUMN_DELETED_ORD) > view->member.ord &&
           result_int(audit->page, i, COLUMN_SINGLES) == 0;
}

static int deletes_next(const struct audit *audit, int i)
{
    while (i < audit->count && !is_by_deletes(audit, i))
        i++;
    return i;
}

static void on_deletes(void *arg, int r, const struct cache_value *value)
{
    struct audit *audit = CAST(audit, arg);
    int i = audit->next;

    audit->counts[i] = strategy_sequence_count(&audit->views[i], r, value);
    audit->next = deletes_next(audit, i + 1);
}

static int deletes_count(struct audit *audit)
{
    char key[KEY_SIZE];

    audit->next = deletes_next(audit, 0);
    for (int i = audit->next; i < audit->count; i = deletes_next(audit, i + 1)) {
        key_channel(key, audit->views[i].channel_id);
        pipeline_add(audit->options->pipeline, 5,
                     (const char *[]){"HMGET", key, "seq", "deleted_floor", "deleted"}, NULL);
    }
    return pipeline_run(audit->options->pipeline, on_deletes, audit);
}

static bool is_drifted(const struct audit *audit, int i)
{
    return audit->counts[i] != STRATEGY_UNKNOWN &&
           unread_differs(audit->views[i].head.strategy, audit->counts[i], audit->views[i].unread);
}

// Reads a drifted pair again: a bit does not record its cursor, so a mark committed after the page
// was read may have set it.
static int bit_confirm(struct audit *audit, int i)
{
    const struct unread_view *view = &audit->views[i];
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};

    params_text(&params, view->channel_id);
    params_text(&params, view->user_id);
    int r = session_call(audit->options->session, &PAIR, &params, &result);
    if (r < 0)
        return r;
    if (result_rows(result) == 0 || result_int(result, 0, 1) != view->head.seq ||
        !unread_differs(STRATEGY_BITMAP, audit->counts[i], result_int(result, 0, 0)))
        audit->counts[i] = STRATEGY_UNKNOWN;
    return 0;
}

static int bits_confirm(struct audit *audit)
{
    int r = 0;

    for (int i = 0; i < audit->count && r >= 0; i++)
        if (audit->views[i].head.strategy == STRATEGY_BITMAP && is_drifted(audit, i))
            r = bit_confirm(audit, i);
    return r;
}

static void command_add(struct audit *audit, int count, const char *const *texts)
{
    pipeline_add(audit->options->pipeline, count, texts, NULL);
}

// Invalidates a member's state in Redis; otherwise Redis may reject the new state as older.
static void member_forget(struct audit *audit, const struct unread_view *view)
{
    char key[KEY_SIZE], number[KEY_NUMBER_SIZE];

    if (view->head.strategy == STRATEGY_BITMAP) {
        key_bitmap(key, view->channel_id);
        snprintf(number, sizeof number, "%" PRId64, view->member.number);
        command_add(audit, 4, (const char *[]){"SETBIT", key, number, "0"});
    } else {
        key_unread(key, view->user_id, view->channel_id);
        command_add(audit, 2, (const char *[]){"UNLINK", key});
    }
}

// Writes a channel's head, for gateways that compare heads, without any deletes up to now.
static void head_install(struct audit *audit, int i)
{
    const struct unread_view *view = &audit->views[i];
    char key[KEY_SIZE];

    key_channel(key, view->channel_id);
    fcall_begin(&audit->call, "channel_install");
    fcall_key(&audit->call, key);
    fcall_int(&audit->call, view->head.seq);
    fcall_int(&audit->call, view->head.ord);
    fcall_int(&audit->call, result_int(audit->page, i, COLUMN_DELETED_ORD));
    fcall_text(&audit->call, "");
    fcall_end(&audit->call);
    command_add(audit, audit->call.count, audit->call.texts);
}

static void member_install(struct audit *audit, int i)
{
    const struct unread_view *view = &audit->views[i];
    const struct strategy_ops *ops = strategy_find(view->head.strategy);
    int64_t tss[MESSAGES_MAX], seqs[MESSAGES_MAX];

    if (!ops || !ops->rebuild)
        return;
    int count = result_ints(audit->page, i, COLUMN_TSS, tss, MESSAGES_MAX);
    result_ints(audit->page, i, COLUMN_SEQS, seqs, MESSAGES_MAX);
    if (!ops->rebuild(&audit->call, view, tss, seqs, count))
        return;
    fcall_end(&audit->call);
    command_add(audit, audit->call.count, audit->call.texts);
    audit->totals->repaired++;
}

static void pair_repair(struct audit *audit, int i)
{
    bool rebuilds = audit->options->mode == AUDIT_REBUILD;
    bool drifted = is_drifted(audit, i);
    bool is_first =
        i == 0 || strcmp(audit->views[i].channel_id, audit->views[i - 1].channel_id) != 0;
    bool is_sequence = audit->views[i].head.strategy == STRATEGY_SEQUENCE;

    if ((rebuilds && is_first) || (drifted && is_sequence))
        head_install(audit, i);
    if (drifted && !is_sequence)
        member_forget(audit, &audit->views[i]);
    if (drifted || (rebuilds && audit->counts[i] == STRATEGY_UNKNOWN))
        member_install(audit, i);
}

static int page_audit(struct audit *audit)
{
    int r = strategy_count_many(audit->options->pipeline, audit->views, (size_t)audit->count,
                                audit->counts);

    if (r >= 0)
        r = deletes_count(audit);
    if (r >= 0)
        r = bits_confirm(audit);
    for (int i = 0; i < audit->count && r >= 0; i++) {
        bool drifted = is_drifted(audit, i);
        audit->totals->pairs++;
        audit->totals->known += audit->counts[i] != STRATEGY_UNKNOWN;
        audit->totals->drifted += drifted;
        metric_add(METRIC_COUNTS_DRIFTED, drifted);
        if (audit->options->mode != AUDIT_VERIFY)
            pair_repair(audit, i);
    }
    return r < 0 ? r : pipeline_run(audit->options->pipeline, NULL, NULL);
}

static bool progress_report(const struct audit *audit)
{
    const struct audit_options *options = audit->options;

    return !options->progress || options->progress(options->arg, audit->totals);
}

// Processes the page of at most `*wanted` pairs after the place, and advances it. A page that
// Postgres rejects is halved until the pair at fault is alone; that one is passed over. Sets
// *wanted to the pairs that were taken, 0 at the end.
static int page_run(struct audit *audit, struct audit_place *place, int64_t *wanted)
{
    int r = page_read(audit, place, *wanted);

    while (r == -ERROR_INTERNAL && *wanted > 1) {
        *wanted /= 2;
        r = page_read(audit, place, *wanted);
    }
    if (r == -ERROR_INTERNAL)
        return pair_pass_over(audit, place);
    if (r < 0)
        return r;
    r = audit->count > 0 ? page_audit(audit) : 0;
    if (audit->count > 0)
        place_set(place, audit->views[audit->count - 1].channel_id,
                  audit->views[audit->count - 1].user_id);
    *wanted = audit->count < *wanted ? 0 : audit->count;
    result_free(TAKE(audit->page));
    return r;
}

// Processes at most `left` pairs after the place.
static int pages_run(struct audit *audit, const char *channel_id, const char *user_id, int64_t left)
{
    struct audit_place place;
    int64_t taken;
    int r;

    place_set(&place, channel_id, user_id);
    do {
        taken = left < PAGE ? left : PAGE;
        r = page_run(audit, &place, &taken);
        left -= taken;
        if (r >= 0 && taken > 0 && left > 0 && !progress_report(audit))
            r = -ERROR_UNAVAILABLE;
    } while (r >= 0 && taken > 0 && left > 0);
    return r;
}

static struct audit *audit_new(const struct audit_options *options, struct audit_totals *ret_totals)
{
    struct audit *audit = memory_must_new(sizeof *audit);

    audit->tag = TAG(audit);
    *ret_totals = (struct audit_totals){0};
    audit->options = options;
    audit->totals = ret_totals;
    return audit;
}

int audit_run(const struct audit_options *options, struct audit_totals *ret_totals)
{
    struct audit *audit = audit_new(options, ret_totals);
    int r = pages_run(audit, "", "", INT64_MAX);

    TAGGED_FREE(audit);
    return r;
}

// Starts at the member after a random user id, since a channel may be large, in the channel after a
// random id of either kind.
static int sample_run(struct audit *audit, int64_t count)
{
    char channel_id[EVENT_ID_SIZE], user_id[ID_SIZE];
    unsigned char kind;

    random_fill(&kind, sizeof kind);
    id_make(kind % 2 == 0 ? 'C' : 'D', channel_id);
    id_make('U', user_id);
    struct audit_place place;
    place_set(&place, channel_id, "");
    int r = pair_find(audit, &place);
    if (r < 0)
        return r;
    r = pages_run(audit, place.channel_id, user_id, count);
    if (r < 0 || audit->totals->pairs == count)
        return r;
    return pages_run(audit, "", "", count - audit->totals->pairs);
}

int audit_sample(const struct audit_options *options, int64_t count,
                 struct audit_totals *ret_totals)
{
    struct audit *audit = audit_new(options, ret_totals);
    int r = sample_run(audit, count);

    TAGGED_FREE(audit);
    return r;
}

int audit_size(const struct audit_options *options, int64_t *ret_pairs)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};

    params_text(&params, options->scope.workspace_id);
    params_text(&params, options->scope.channel_id);
    params_text(&params, options->scope.user_id);
    int r = session_call(options->session, &SIZE, &params, &result);
    if (r < 0)
        return r;
    if (!result_bool(result, 0, 1))
        return -ERROR_INVALID_ARGUMENTS;
    *ret_pairs = result_int(result, 0, 0);
    return 0;
}
