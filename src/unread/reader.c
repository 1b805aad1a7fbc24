// SPDX-License-Identifier: Apache-2.0
#include "unread/reader.h"

#include "base/error.h"
#include "base/metrics.h"
#include "unread/keys.h"

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

struct reading {
    struct cache *cache;
    struct store *store;
    struct unread_view *view;
    unread_read_fn *fn;
    void *arg;
    // what Redis knows of the channel
    bool channel_known;
    int64_t deleted_floor;
    char *deleted; // "ord:user ord:user", heap
};

static void reading_end(struct reading *reading, int r)
{
    reading->fn(reading->arg, r);
    free(reading->deleted);
    free(reading);
}

// Posts of others after `ord` that were deleted: from "ord:user ord:user …".
static int64_t deleted_after(const char *deleted, int64_t ord, const char *user_id)
{
    int64_t count = 0;

    while (*deleted != '\0') {
        char *colon;
        int64_t deleted_ord = strtoll(deleted, &colon, 10);
        size_t length = *colon == ':' ? strcspn(colon + 1, " ") : 0;
        bool own = length == strlen(user_id) && strncmp(colon + 1, user_id, length) == 0;
        count += deleted_ord > ord && !own;
        deleted = colon + (*colon == ':') + length;
        deleted += *deleted == ' ';
        if (length == 0)
            break;
    }
    return count;
}

static void channel_install(struct reading *reading, int64_t deleted_ord)
{
    const struct event_head *head = &reading->view->head;
    // Which posts at or below deleted_ord were deleted is not said, so that for cursors before it
    // Postgres is asked.
    const int64_t numbers[] = {head->seq, head->ord, deleted_ord};
    char texts[3][KEY_NUMBER_SIZE];
    char key[KEY_SIZE];

    for (size_t i = 0; i < 3; i++)
        snprintf(texts[i], sizeof texts[i], "%" PRId64, numbers[i]);
    key_channel(key, reading->view->channel_id);
    const char *const arguments[] = {"FCALL",  "channel_install", "1",      key,
                                     texts[0], texts[1],          texts[2], ""};
    cache_call(reading->cache, sizeof arguments / sizeof arguments[0], arguments, NULL, NULL, NULL);
}

static void copy_mend(struct reading *reading, int64_t deleted_ord)
{
    struct member_call call;

    if (!cache_is_up(reading->cache))
        return;
    metric_add(METRIC_CACHE_REBUILDS, 1);
    channel_install(reading, deleted_ord);
    member_call_make(&call, reading->view->user_id, reading->view->channel_id,
                     &reading->view->member);
    cache_call(reading->cache, MEMBER_CALL_ARGUMENTS, call.texts, NULL, NULL, NULL);
}

static void truth_answer(void *arg, const struct store_outcome *outcome)
{
    struct reading *reading = arg;

    if (outcome->r == 0 && result_rows(outcome->result) > 0) {
        unread_view_read(outcome->result, 0, 0, reading->view);
        copy_mend(reading, result_int(outcome->result, 0, UNREAD_VIEW_COLUMNS));
    }
    reading_end(reading, outcome->r);
}

static void truth_ask(struct reading *reading)
{
    struct params params = {0};

    metric_add(METRIC_CACHE_FALLBACKS, 1);
    params_text(&params, reading->view->channel_id);
    params_text(&params, reading->view->user_id);
    store_call(reading->store, STORE_READ, &UNREAD, &params, truth_answer, reading);
}

// HMGET channel-latest:{C} seq deleted_floor deleted. Not ord: events that were read back bring
// that of a later moment with an earlier seq, and the caller has its own.
static void channel_answer(void *arg, int r, const struct cache_value *value)
{
    struct reading *reading = arg;

    if (r < 0 || cache_value_count(value) != 3 || cache_value_is_null(cache_value_at(value, 0)) ||
        cache_value_int(cache_value_at(value, 0)) != reading->view->head.seq)
        return;
    reading->deleted_floor = cache_value_int(cache_value_at(value, 1));
    reading->deleted = strdup(cache_value_text(cache_value_at(value, 2)));
    reading->channel_known = reading->deleted != NULL;
}

// HGET read_cursor:{U} C: "epoch ts seq ord own member_seq active"; `active` with a ? tells of
// lower bounds alone. How many posts the member ever made is not in it: that Postgres told with the
// rest of what is known.
static bool member_matches(const struct reading *reading, const char *packed,
                           struct event_member *ret_member)
{
    const struct event_member *known = &reading->view->member;
    struct event_member copy = *known;
    char active[4] = "";

    if (sscanf(
            packed, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %3s",
            &copy.epoch, &copy.ts, &copy.seq, &copy.ord, &copy.own, &copy.member_seq, active) != 7)
        return false;
    if (active[0] != '1' || copy.epoch != known->epoch || copy.ts != known->ts)
        return false;
    *ret_member = copy;
    return true;
}

static void member_answer(void *arg, int r, const struct cache_value *value)
{
    struct reading *reading = arg;
    struct unread_view *view = reading->view;

    if (r < 0 || !reading->channel_known ||
        !member_matches(reading, cache_value_text(value), &view->member) ||
        view->member.ord < reading->deleted_floor) {
        truth_ask(reading);
        return;
    }
    view->unread =
        unread_view_count(view, deleted_after(reading->deleted, view->member.ord, view->user_id));
    reading_end(reading, 0);
}

void unread_read(struct cache *cache, struct store *store, struct unread_view *view,
                 unread_read_fn *fn, void *arg)
{
    struct reading *reading = calloc(1, sizeof *reading);
    char channel_key[KEY_SIZE];
    char cursor_key[KEY_SIZE];

    if (reading == NULL) {
        fn(arg, -ERROR_MEMORY);
        return;
    }
    *reading = (struct reading){.cache = cache, .store = store, .view = view, .fn = fn, .arg = arg};
    if (!cache_is_up(cache)) {
        truth_ask(reading);
        return;
    }
    key_channel(channel_key, view->channel_id);
    key_cursor(cursor_key, view->user_id);
    cache_call(cache, 5,
               (const char *const[]){"HMGET", channel_key, "seq", "deleted_floor", "deleted"}, NULL,
               channel_answer, reading);
    cache_call(cache, 3, (const char *const[]){"HGET", cursor_key, view->channel_id}, NULL,
               member_answer, reading);
}
