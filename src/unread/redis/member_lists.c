// SPDX-License-Identifier: Apache-2.0
// The list of a channel's members in Redis, in shards if it is long.
#include "unread/member_lists.h"

#include "base/check.h"
#include "base/error.h"
#include "base/id.h"
#include "base/metrics.h"
#include "unread/fcall.h"
#include "unread/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHARD_SIZE = 5000,
    SHARDED_FROM = 10000,
    SHARDS_MAX = 200000, // for a billion members: a larger number is not ours
    PAGE = 5000,
    SHARD_KEY_SIZE = KEY_SIZE + 32
};

// A member of each shard, which distinguishes an empty shard from one that expired or was evicted.
static const char SHARD_MARK[] = "!";

static const struct statement SIZE = {"members_size",
                                      "SELECT member_count, numbers FROM channels WHERE id = $1"};
static const struct statement PAGE_OF = {
    "members_page", "SELECT user_id, number FROM channel_members WHERE channel_id = $1 AND active "
                    "AND user_id > $2 COLLATE \"C\" ORDER BY user_id LIMIT $3"};

void member_ids_done(struct member_ids *ids)
{
    free(ids->ids);
    *ids = (struct member_ids){0};
}

static int member_ids_add(struct member_ids *ids, const char *id)
{
    if (ids->count == ids->room) {
        size_t room = ids->room == 0 ? 128 : 2 * ids->room;
        char(*grown)[EVENT_ID_SIZE] = realloc(ids->ids, room * sizeof *grown);
        if (!grown)
            return -ERROR_MEMORY;
        ids->ids = grown;
        ids->room = room;
    }
    snprintf(ids->ids[ids->count++], EVENT_ID_SIZE, "%s", id);
    return 0;
}

void member_list_done(struct member_list *list)
{
    member_ids_done(&list->ids);
    *list = MEMBER_LIST;
}

void member_list_take(void *arg, int r, const struct cache_value *value)
{
    struct member_list *list = CAST(member_list, arg);
    size_t count = r < 0 ? 0 : cache_value_count(value);

    list->r = r;
    list->complete = count > 0;
    for (size_t i = 0; i < count && list->r >= 0; i++) {
        const char *member = cache_value_text(cache_value_at(value, i));
        if (strcmp(member, "?") == 0)
            list->complete = false;
        else if (strcmp(member, SHARD_MARK) == 0)
            list->is_shard = true;
        else if (id_is_valid(member, "UW"))
            list->r = member_ids_add(&list->ids, member);
        else if (member[0] == '*' &&
                 integer_parse(member + 1, strlen(member + 1), 0, SHARDS_MAX, &list->shards) >= 0)
            continue;
        else
            list->complete = false; // written by a later release in an unknown form
    }
}

static void list_key(char *ret_key, const char *channel_id, int64_t shard)
{
    key_members(ret_key, channel_id);
    if (shard >= 0)
        snprintf(ret_key + strlen(ret_key), SHARD_KEY_SIZE - strlen(ret_key), ":shard:%" PRId64,
                 shard);
}

static void expire_add(struct pipeline *pipeline, const char *key)
{
    char seconds[24];

    snprintf(seconds, sizeof seconds, "%d", MEMBERS_TTL_S);
    pipeline_add(pipeline, 3, (const char *[]){"EXPIRE", key, seconds}, NULL);
}

void members_read_add(struct pipeline *pipeline, const char *channel_id, int64_t shard)
{
    char key[SHARD_KEY_SIZE];

    list_key(key, channel_id, shard);
    pipeline_add(pipeline, 2, (const char *[]){"SMEMBERS", key}, NULL);
    expire_add(pipeline, key);
}

// Passes the first reply to a list and ignores the others.
static void first_taken(void *arg, int r, const struct cache_value *value)
{
    struct member_list **list = arg;

    if (*list)
        member_list_take(*list, r, value);
    *list = NULL;
}

int members_read_shard(struct pipeline *pipeline, const char *channel_id, int64_t shard,
                       struct member_list *ret_list)
{
    struct member_list *next = ret_list;
    char key[SHARD_KEY_SIZE];

    (void)!pipeline_run(pipeline, NULL, NULL); // commands added earlier have replies of their own
    members_read_add(pipeline, channel_id, shard);
    int r = pipeline_run(pipeline, first_taken, &next);
    if (r >= 0)
        r = ret_list->r;
    if (r < 0 || shard < 0 || ret_list->is_shard)
        return r;
    list_key(key, channel_id, -1);
    pipeline_add(pipeline, 2, (const char *[]){"DEL", key}, NULL);
    r = pipeline_run(pipeline, NULL, NULL);
    return r < 0 ? r : -ERROR_BUSY;
}

static int shards_read(struct pipeline *pipeline, const char *channel_id, int64_t shards,
                       struct member_ids *ids)
{
    for (int64_t shard = 0; shard < shards; shard++) {
        CLEANUP(member_list_done) struct member_list list = MEMBER_LIST;
        int r = members_read_shard(pipeline, channel_id, shard, &list);
        for (size_t i = 0; i < list.ids.count && r >= 0; i++)
            r = member_ids_add(ids, list.ids.ids[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

// Reads everything Redis has of a list, complete or not.
static int list_read_all(struct pipeline *pipeline, const char *channel_id,
                         struct member_list *ret_list)
{
    int r = members_read_shard(pipeline, channel_id, -1, ret_list);

    return r < 0 ? r : shards_read(pipeline, channel_id, ret_list->shards, &ret_list->ids);
}

int members_read(struct pipeline *pipeline, struct session *session, const char *channel_id,
                 struct member_ids *ret_ids)
{
    CLEANUP(member_list_done) struct member_list list = MEMBER_LIST;

    int r = list_read_all(pipeline, channel_id, &list);
    if (r == -ERROR_BUSY || (r >= 0 && !list.complete)) {
        member_list_done(&list);
        r = members_build(pipeline, session, channel_id);
        if (r >= 0)
            r = list_read_all(pipeline, channel_id, &list);
    }
    if (r < 0)
        return r;
    *ret_ids = list.ids;
    list.ids = (struct member_ids){0};
    return 0;
}

typedef int member_fn(void *arg, const char *user_id, int64_t number);

// Calls `fn` with each member in Postgres, sorted by id.
static int members_each(struct session *session, const char *channel_id, member_fn *fn, void *arg)
{
    char after[EVENT_ID_SIZE] = "";

    for (;;) {
        CLEANUP_RESULT struct result *result = NULL;
        struct params params = {0};
        params_text(&params, channel_id);
        params_text(&params, after);
        params_int(&params, PAGE);
        int r = session_call(session, &PAGE_OF, &params, &result);
        int rows = r < 0 ? 0 : result_rows(result);
        for (int row = 0; row < rows && r >= 0; row++)
            r = fn(arg, result_text(result, row, 0), result_int(result, row, 1));
        if (r < 0 || rows < PAGE)
            return r < 0 ? r : 0;
        snprintf(after, sizeof after, "%s", result_text(result, rows - 1, 0));
    }
}

struct build {
    uint32_t tag;
    struct pipeline *pipeline;
    const char *channel_id;
    int64_t shards;
    int count; // members added so far
};

static int build_add(void *arg, const char *user_id, int64_t number)
{
    struct build *build = CAST(build, arg);
    char key[SHARD_KEY_SIZE];
    int64_t shard = number < 0 ? 0 : number / SHARD_SIZE;

    list_key(key, build->channel_id, build->shards == 0 ? -1 : shard);
    pipeline_add(build->pipeline, 3, (const char *[]){"SADD", key, user_id}, NULL);
    return ++build->count % PAGE == 0 ? pipeline_run(build->pipeline, NULL, NULL) : 0;
}

static int build_end(struct build *build)
{
    char key[SHARD_KEY_SIZE];
    char count[24];

    for (int64_t shard = -1; shard < build->shards; shard++) {
        list_key(key, build->channel_id, shard);
        if (shard >= 0)
            pipeline_add(build->pipeline, 3, (const char *[]){"SADD", key, SHARD_MARK}, NULL);
        expire_add(build->pipeline, key);
    }
    key_members(key, build->channel_id);
    snprintf(count, sizeof count, "%d", build->count);
    pipeline_add(build->pipeline, 5, (const char *[]){"FCALL", "members_close", "1", key, count},
                 NULL);
    return pipeline_run(build->pipeline, NULL, NULL);
}

static int shards_wanted(struct session *session, const char *channel_id, int64_t *ret_shards)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};

    params_text(&params, channel_id);
    int r = session_call(session, &SIZE, &params, &result);
    if (r < 0)
        return r;
    int64_t numbers = result_int(result, 0, 1);
    *ret_shards =
        result_int(result, 0, 0) > SHARDED_FROM ? (numbers + SHARD_SIZE - 1) / SHARD_SIZE : 0;
    return 0;
}

// Creates the list, as incomplete, before reading Postgres: users who join meanwhile add
// themselves.
int members_build(struct pipeline *pipeline, struct session *session, const char *channel_id)
{
    struct build build = {.tag = TAG(build), .pipeline = pipeline, .channel_id = channel_id};
    char key[SHARD_KEY_SIZE];
    char shards[24];

    int r = shards_wanted(session, channel_id, &build.shards);
    if (r < 0)
        return r;
    key_members(key, channel_id);
    snprintf(shards, sizeof shards, "%" PRId64, build.shards);
    pipeline_add(pipeline, 5, (const char *[]){"FCALL", "members_open", "1", key, shards}, NULL);
    r = pipeline_run(pipeline, NULL, NULL);
    if (r >= 0)
        r = members_each(session, channel_id, build_add, &build);
    if (r >= 0)
        r = build_end(&build);
    metric_add(METRIC_MEMBERS_BUILT, r >= 0);
    return r;
}

// A comparison of one list in Redis, sorted, with Postgres in the same order.
struct comparison {
    uint32_t tag;
    struct pipeline *pipeline;
    const char *channel_id;
    struct member_ids ids;
    size_t next;
    int64_t wrong;
};

static void change_add(struct comparison *comparison, const char *user_id, int64_t number,
                       bool joins)
{
    struct fcall call;
    char key[SHARD_KEY_SIZE];

    fcall_begin(&call, "members_change");
    key_members(key, comparison->channel_id);
    fcall_key(&call, key);
    key_unread(key, user_id, comparison->channel_id);
    fcall_key(&call, key);
    fcall_text(&call, user_id);
    fcall_int(&call, number < 0 ? 0 : number);
    fcall_int(&call, joins);
    fcall_end(&call);
    pipeline_add(comparison->pipeline, call.count, call.texts, NULL);
    comparison->wrong++;
}

// Removes the ids before `user_id` from Redis, since Postgres does not have them. Returns whether
// `user_id` itself is in Redis.
static bool compare_up_to(struct comparison *comparison, const char *user_id)
{
    for (; comparison->next < comparison->ids.count; comparison->next++) {
        const char *known = comparison->ids.ids[comparison->next];
        int order = user_id ? strcmp(known, user_id) : -1;
        if (order >= 0) {
            comparison->next += order == 0;
            return order == 0;
        }
        change_add(comparison, known, 0, false);
    }
    return false;
}

static int compare(void *arg, const char *user_id, int64_t number)
{
    struct comparison *comparison = CAST(comparison, arg);

    if (!compare_up_to(comparison, user_id))
        change_add(comparison, user_id, number, true);
    return 0;
}

static int ids_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int list_reconcile(struct pipeline *pipeline, struct session *session,
                          const char *channel_id, int64_t *repaired)
{
    CLEANUP(member_list_done) struct member_list list = MEMBER_LIST;

    int r = list_read_all(pipeline, channel_id, &list);
    if (r < 0 || !list.complete)
        return r == -ERROR_BUSY ? 0 : r; // the list is built on its next use
    if (list.ids.count > 0)
        qsort(list.ids.ids, list.ids.count, sizeof *list.ids.ids, ids_compare);
    struct comparison comparison = {
        .tag = TAG(comparison), .pipeline = pipeline, .channel_id = channel_id, .ids = list.ids};
    r = members_each(session, channel_id, compare, &comparison);
    if (r < 0)
        return r;
    compare_up_to(&comparison, NULL);
    *repaired += comparison.wrong;
    return pipeline_run(pipeline, NULL, NULL);
}

// One step of SCAN.
struct scan {
    uint32_t tag;
    char cursor[24];
    struct member_ids channels;
    int r;
};

static void on_scan(void *arg, int r, const struct cache_value *value)
{
    struct scan *scan = CAST(scan, arg);
    const struct cache_value *keys = r < 0 ? NULL : cache_value_at(value, 1);

    scan->r = r;
    if (r < 0)
        return;
    snprintf(scan->cursor, sizeof scan->cursor, "%s", cache_value_text(cache_value_at(value, 0)));
    for (size_t i = 0; i < cache_value_count(keys) && scan->r >= 0; i++) {
        char id[EVENT_ID_SIZE];
        int end = 0;
        const char *key = cache_value_text(cache_value_at(keys, i));
        if (sscanf(key, "channel:members:{%23[A-Z0-9]}%n", id, &end) == 1 && end > 0 &&
            key[end] == '\0')
            scan->r = member_ids_add(&scan->channels, id);
    }
}

int members_reconcile(struct pipeline *pipeline, struct session *session, int64_t *ret_repaired)
{
    struct scan scan = {.tag = TAG(scan), .cursor = "0"};
    int64_t repaired = 0;
    int r;

    do {
        pipeline_add(
            pipeline, 6,
            (const char *[]){"SCAN", scan.cursor, "MATCH", "channel:members:*", "COUNT", "1000"},
            NULL);
        r = pipeline_run(pipeline, on_scan, &scan);
        r = r < 0 ? r : scan.r;
        for (size_t i = 0; i < scan.channels.count && r >= 0; i++)
            r = list_reconcile(pipeline, session, scan.channels.ids[i], &repaired);
        scan.channels.count = 0;
    } while (r >= 0 && strcmp(scan.cursor, "0") != 0);
    member_ids_done(&scan.channels);
    metric_add(METRIC_MEMBERS_REPAIRED, repaired);
    *ret_repaired = repaired;
    return r < 0 ? r : 0;
}
