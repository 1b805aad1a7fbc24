// SPDX-License-Identifier: Apache-2.0
// Reads sidebars for unread.sync, and keeps those of users in many channels up to date.
#include "unread/sidebar.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/list.h"
#include "base/metrics.h"
#include "events/event.h"
#include "sidebar_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A chunk occupies the Postgres connection for some milliseconds, and the loop for two.
enum { FIRST_CHUNK = 250, SPARSE_CHUNK = 500, CHUNK = 1000, SLICE = 400, DENSE_TIMES = 5 };
#define AFTER_ALL_IDS "~"
enum { TICK_MS = 60000, IDLE_MAX_MS = 300000, CHANGES_MIN = 200, CHANGES_SHARE = 20 };

// The snapshot that names the result is older than everything read after it.
static const struct statement BEGIN = {
    "sidebar_begin", "SELECT pg_snapshot_xmin(pg_current_snapshot())::text, t.unread_count,"
                     " t.mention_count, t.shared_mentions FROM thread_totals($2, $1) t"};
// The changes since; COLUMN_KNOWN is false if they cannot be determined. OFFSET 0 makes the planner
// begin with the few changed channels, however many the user is in.
static const struct statement CHANGES = {
    "sidebar_changes",
    "SELECT t.token, t.unread_count, t.mention_count, t.shared_mentions, t.ids IS NOT NULL,"
    " " SIDEBAR_ROW " FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS token, h.*,"
    " sync_candidates($1, $3::xid8, $4) AS ids FROM thread_totals($2, $1) h OFFSET 0) t"
    " LEFT JOIN LATERAL (SELECT u.* FROM unnest(t.ids) i CROSS JOIN LATERAL (SELECT * FROM"
    " sidebar_few_rows w WHERE w.channel_id = i AND w.user_id = $1 OFFSET 0) u"
    " WHERE u.member_changed >= $3::xid8 OR u.channel_changed >= $3::xid8) r"
    " ON true"};
enum {
    COLUMN_TOKEN,
    COLUMN_THREAD_UNREAD,
    COLUMN_THREAD_MENTIONS,
    COLUMN_SHARED_MENTIONS,
    COLUMN_KNOWN,
    COLUMN_ROW
};
// The next rows by channel: by looking up each channel, or by merging channels and members, from
// both ends.
#define CHUNK_SQL(view, head_range, order)                                                         \
    "SELECT " SIDEBAR_ROW " FROM " view " r WHERE r.user_id = $1 AND r.channel_id > $2"            \
    " AND r.channel_id < $3" head_range " ORDER BY r.channel_id " order " LIMIT $4"
#define DENSE_SQL(order) CHUNK_SQL("sidebar_rows", " AND r.head_id > $2 AND r.head_id < $3", order)
static const struct statement CHUNK_SPARSE = {"sidebar_sparse",
                                              CHUNK_SQL("sidebar_few_rows", "", "")};
static const struct statement CHUNK_DENSE = {"sidebar_dense", DENSE_SQL("")};
static const struct statement CHUNK_BACK = {"sidebar_back", DENSE_SQL("DESC")};
// Whether the user is in so large a share of a range of channels that scanning all of them is
// cheaper.
static const struct statement DENSITY = {
    "sidebar_density", "SELECT count(*) < $3 FROM (SELECT 1 FROM channels c WHERE c.id > $1"
                       " AND c.id <= $2 LIMIT $3) s"};

// A caller waiting for a user's channels.
struct sidebar_reading {
    struct list link; // in the slot's readings
    sidebar_fn *fn;
    void *arg;
};

struct slot;

// One of two scans of a user's channels, from both ends towards the middle. The first one ascends.
struct sidebar_walk {
    uint32_t tag;
    struct slot *slot;
    const struct statement *statement;
    enum store_lane lane;
    char last_id[ID_SIZE]; // of the rows read so far
};
enum { WALK_UP, WALK_DOWN, WALK_COUNT };

// A user whose channels are being read, in use, or cached. One read at a time.
struct slot {
    uint32_t tag;
    UT_hash_handle hh;
    struct list idle_link; // in sidebar->idle while cached, least recently used first
    struct sidebar *sidebar;
    char user_id[EVENT_ID_SIZE];
    char workspace_id[EVENT_ID_SIZE];
    struct sidebar_rows rows;
    struct list readings; // the first is being served
    bool is_whole;        // rows are complete
    struct sidebar_walk walks[WALK_COUNT];
    bool has_met;        // the scans have met
    int chunk;           // rows per request
    int asked;           // replies outstanding
    int r;               // error of a reply, or 0
    int64_t era;         // the sidebar's, at the time of the request
    size_t cached_bytes; // counted in the sidebar's
    int64_t used_ms;
};

struct sidebar {
    uint32_t tag;
    struct loop *loop;
    struct store *store;
    struct sidebar_options options;
    struct slot *slots;
    struct list idle;
    size_t cached_bytes;
    int64_t era; // incremented whenever a Postgres connection comes up
    struct loop_timer *timer;
};

static void slot_free(struct slot *slot)
{
    list_remove(&slot->idle_link);
    HASH_DEL(slot->sidebar->slots, slot);
    sidebar_rows_done(&slot->rows);
    TAGGED_FREE(slot);
}

static void slot_forget(struct slot *slot)
{
    sidebar_rows_clear(&slot->rows);
    slot->is_whole = false;
    slot->has_met = false;
    slot->walks[WALK_UP] =
        (struct sidebar_walk){TAG(sidebar_walk), slot, &CHUNK_SPARSE, STORE_SYNC, ""};
    slot->walks[WALK_DOWN] =
        (struct sidebar_walk){TAG(sidebar_walk), slot, &CHUNK_BACK, STORE_BULK_BACK, AFTER_ALL_IDS};
}

static void slot_uncache(struct slot *slot)
{
    struct sidebar *sidebar = slot->sidebar;

    list_remove(&slot->idle_link);
    ASSERT(sidebar->cached_bytes >= slot->cached_bytes);
    sidebar->cached_bytes -= slot->cached_bytes;
    metric_add(METRIC_SIDEBAR_BYTES, -(int64_t)slot->cached_bytes);
    slot->cached_bytes = 0;
}

static void oldest_drop(struct sidebar *sidebar)
{
    ASSERT(!list_is_empty(&sidebar->idle));
    struct slot *slot = LIST_ITEM(sidebar->idle.next, struct slot, idle_link);

    metric_add(METRIC_SIDEBAR_DROPPED, 1);
    slot_uncache(slot);
    slot_free(slot);
}

static bool slot_is_cacheable(const struct slot *slot)
{
    const struct sidebar *sidebar = slot->sidebar;

    return slot->is_whole && slot->era == sidebar->era &&
           slot->rows.state.count >= sidebar->options.cached_min &&
           slot->rows.wasted <= slot->rows.bytes.length / 2;
}

// The slot is no longer in use: caches or frees it.
static void slot_settle(struct slot *slot)
{
    struct sidebar *sidebar = slot->sidebar;
    size_t bytes = sidebar_rows_size(&slot->rows);
    size_t bytes_max = (size_t)sidebar->options.cached_bytes;
    bool is_worth_it = slot_is_cacheable(slot);

    if (!is_worth_it || bytes > bytes_max) {
        metric_add(METRIC_SIDEBAR_DROPPED, is_worth_it);
        slot_free(slot);
        return;
    }
    while (sidebar->cached_bytes + bytes > bytes_max)
        oldest_drop(sidebar);
    slot->cached_bytes = bytes;
    slot->used_ms = loop_now_ms(sidebar->loop);
    sidebar->cached_bytes += bytes;
    metric_add(METRIC_SIDEBAR_BYTES, (int64_t)bytes);
    list_append(&sidebar->idle, &slot->idle_link);
    loop_timer_set(sidebar->timer, TICK_MS);
}

static void slot_ask(struct slot *slot, const struct statement *statement, struct params *params,
                     store_fn *fn)
{
    slot->asked++;
    store_call(slot->sidebar->store, STORE_SYNC, statement, params, fn, slot);
}

static void slot_begin(struct slot *slot);

// The first waiting caller has been served.
static void slot_next(struct slot *slot)
{
    ASSERT(!list_is_empty(&slot->readings));
    struct sidebar_reading *reading = LIST_ITEM(slot->readings.next, struct sidebar_reading, link);

    list_remove(&reading->link);
    free(reading);
    if (list_is_empty(&slot->readings))
        slot_settle(slot);
    else
        slot_begin(slot);
}

static void slot_serve(struct slot *slot)
{
    struct sidebar_reading *reading = LIST_ITEM(slot->readings.next, struct sidebar_reading, link);

    if (slot->rows.failed)
        slot->r = -ERROR_MEMORY;
    if (slot->r == 0 && slot->era != slot->sidebar->era) { // Postgres was reconnected meanwhile
        slot_forget(slot);
        slot_begin(slot);
        return;
    }
    slot->is_whole = slot->r == 0;
    if (slot->is_whole) {
        reading->fn(reading->arg, 0, &slot->rows.state);
        return;
    }
    slot_forget(slot);
    reading->fn(reading->arg, slot->r, NULL);
    slot_next(slot);
}

// Takes a reply. False: a request has failed. After the last reply, that is reported to the caller,
// and the slot is freed or serves the next one.
static bool slot_take(struct slot *slot, const struct store_outcome *outcome)
{
    slot->asked--;
    if (outcome->r < 0)
        slot->r = outcome->r;
    if (slot->r == 0)
        return true;
    if (slot->asked == 0)
        slot_serve(slot);
    return false;
}

static void token_take(struct slot *slot, const struct result *result)
{
    struct sidebar_state *state = &slot->rows.state;

    state->xid = result_int(result, 0, COLUMN_TOKEN);
    state->era = store_era(slot->sidebar->store).number;
    state->since_s = clock_wall_us() / 1000000;
    state->thread_unread = result_int(result, 0, COLUMN_THREAD_UNREAD);
    state->thread_mentions = result_int(result, 0, COLUMN_THREAD_MENTIONS);
    state->shared_mentions = result_int(result, 0, COLUMN_SHARED_MENTIONS);
}

static void on_begin(void *arg, const struct store_outcome *outcome)
{
    struct slot *slot = CAST(slot, arg);

    if (slot_take(slot, outcome))
        token_take(slot, outcome->result);
}

static void on_chunk(void *arg, const struct store_outcome *outcome);

static void walk_ask(struct sidebar_walk *walk)
{
    struct slot *slot = walk->slot;
    struct params params = {0};

    params_text(&params, slot->user_id);
    params_text(&params, slot->walks[WALK_UP].last_id);
    params_text(&params, slot->walks[WALK_DOWN].last_id);
    params_int(&params, slot->chunk);
    slot->asked++;
    store_call(slot->sidebar->store, walk->lane, walk->statement, &params, on_chunk, walk);
    store_flush(slot->sidebar->store, walk->lane);
}

static void on_density(void *arg, const struct store_outcome *outcome)
{
    struct slot *slot = CAST(slot, arg);

    if (!slot_take(slot, outcome))
        return;
    slot->chunk = SPARSE_CHUNK;
    if (result_bool(outcome->result, 0, 0)) {
        slot->chunk = CHUNK;
        slot->walks[WALK_UP].statement = &CHUNK_DENSE;
        slot->walks[WALK_UP].lane = STORE_BULK;
        walk_ask(&slot->walks[WALK_DOWN]);
    }
    walk_ask(&slot->walks[WALK_UP]);
}

static void slot_ask_density(struct slot *slot)
{
    struct params params = {0};

    params_text(&params, "");
    params_text(&params, slot->walks[WALK_UP].last_id);
    params_int(&params, (int64_t)FIRST_CHUNK * DENSE_TIMES);
    slot_ask(slot, &DENSITY, &params, on_density);
    store_flush(slot->sidebar->store, STORE_SYNC);
}

// Whether the other scan has already passed a channel.
static bool walk_is_past(const struct sidebar_walk *walk, const char *channel_id)
{
    const struct sidebar_walk *walks = walk->slot->walks;

    return walk == &walks[WALK_UP] ? strcmp(channel_id, walks[WALK_DOWN].last_id) >= 0
                                   : strcmp(channel_id, walks[WALK_UP].last_id) <= 0;
}

// Returns how many rows of a chunk the other scan has not read, and advances this scan past them.
// If there are fewer than requested, the scans have met.
static int walk_take(struct sidebar_walk *walk, const struct result *result)
{
    struct slot *slot = walk->slot;
    int count = slot->has_met ? 0 : result_rows(result);

    slot->has_met = slot->has_met || count < slot->chunk;
    for (; count > 0 && walk_is_past(walk, result_text(result, count - 1, 0)); count--)
        slot->has_met = true;
    if (count > 0)
        snprintf(walk->last_id, sizeof walk->last_id, "%s", result_text(result, count - 1, 0));
    return count;
}

// Reads from the lanes between slices, so that Postgres can send the rest meanwhile.
static void slot_add(struct slot *slot, const struct result *result, int count)
{
    for (int first = 0; first < count; first += SLICE) {
        int left = count - first;
        sidebar_rows_add(&slot->rows, result, first, left < SLICE ? left : SLICE);
        for (int i = 0; i < WALK_COUNT; i++)
            store_pull(slot->sidebar->store, slot->walks[i].lane);
    }
}

// Sorts in portions, so that others are served in between.
static void slot_sort(void *arg)
{
    struct slot *slot = CAST(slot, arg);

    while (!sidebar_rows_sort(&slot->rows))
        if (loop_post(slot->sidebar->loop, slot_sort, slot) == 0)
            return;
    slot_serve(slot);
}

static void on_chunk(void *arg, const struct store_outcome *outcome)
{
    struct sidebar_walk *walk = CAST(sidebar_walk, arg);
    struct slot *slot = walk->slot;

    if (!slot_take(slot, outcome))
        return;
    int count = walk_take(walk, outcome->result);
    if (!slot->has_met && slot->chunk == FIRST_CHUNK)
        slot_ask_density(slot);
    else if (!slot->has_met)
        walk_ask(walk);
    slot_add(slot, outcome->result, count);
    if (slot->asked == 0)
        slot_sort(slot);
}

static void slot_read_anew(struct slot *slot)
{
    struct params params = {0};

    metric_add(METRIC_SIDEBAR_ANEW, 1);
    slot_forget(slot);
    slot->chunk = FIRST_CHUNK;
    params_text(&params, slot->user_id);
    params_text(&params, slot->workspace_id);
    slot_ask(slot, &BEGIN, &params, on_begin);
    walk_ask(&slot->walks[WALK_UP]);
}

static void on_changes(void *arg, const struct store_outcome *outcome)
{
    struct slot *slot = CAST(slot, arg);

    if (!slot_take(slot, outcome))
        return;
    if (!result_bool(outcome->result, 0, COLUMN_KNOWN)) {
        slot_read_anew(slot);
        return;
    }
    metric_add(METRIC_SIDEBAR_CHANGES, 1);
    sidebar_rows_apply(&slot->rows, outcome->result, COLUMN_ROW);
    token_take(slot, outcome->result);
    slot_serve(slot);
}

static void slot_ask_changes(struct slot *slot)
{
    struct params params = {0};

    params_text(&params, slot->user_id);
    params_text(&params, slot->workspace_id);
    params_xid(&params, slot->rows.state.xid);
    params_int(&params, CHANGES_MIN + slot->rows.state.count / CHANGES_SHARE);
    slot_ask(slot, &CHANGES, &params, on_changes);
}

static void slot_begin(struct slot *slot)
{
    slot->r = 0;
    slot->era = slot->sidebar->era;
    if (slot->is_whole)
        slot_ask_changes(slot);
    else
        slot_read_anew(slot);
}

static struct slot *slot_new(struct sidebar *sidebar, const struct actor *actor)
{
    struct slot *slot = TAGGED_NEW(slot);

    if (!slot)
        return NULL;
    slot->sidebar = sidebar;
    snprintf(slot->user_id, sizeof slot->user_id, "%s", actor->user_id);
    snprintf(slot->workspace_id, sizeof slot->workspace_id, "%s", actor->workspace_id);
    list_init(&slot->idle_link);
    list_init(&slot->readings);
    sidebar_rows_init(&slot->rows, slot->user_id);
    slot_forget(slot);
    HASH_ADD_STR(sidebar->slots, user_id, slot);
    return slot;
}

int sidebar_read(struct sidebar *sidebar, const struct actor *actor, sidebar_fn *fn, void *arg)
{
    ASSERT(fn);
    struct slot *slot;
    struct sidebar_reading *reading = malloc(sizeof *reading);

    HASH_FIND_STR(sidebar->slots, actor->user_id, slot);
    if (!slot && reading)
        slot = slot_new(sidebar, actor);
    if (!slot || !reading) {
        free(reading);
        return -ERROR_MEMORY;
    }
    if (!list_is_empty(&slot->idle_link))
        slot_uncache(slot);
    bool is_first = list_is_empty(&slot->readings);
    *reading = (struct sidebar_reading){.fn = fn, .arg = arg};
    list_append(&slot->readings, &reading->link);
    if (is_first)
        slot_begin(slot);
    return 0;
}

void sidebar_release(const struct sidebar_state *state)
{
    slot_next(LIST_ITEM(state, struct slot, rows.state));
}

static void on_warm(void *arg, const struct store_outcome *outcome)
{
    (void)arg;
    (void)outcome;
}

// Plans the statements when a connection comes up: planning takes longer than the rest of a read
// for a user in few channels.
static void lane_warm(struct sidebar *sidebar, enum store_lane lane,
                      const struct statement *statement)
{
    struct params params = {0};

    params_text(&params, "");
    params_text(&params, "");
    params_text(&params, "");
    params_int(&params, 0);
    store_call(sidebar->store, lane, statement, &params, on_warm, NULL);
}

// After a crash, Postgres may assign transaction ids again, so cached lists are invalid.
static void on_up(void *arg)
{
    struct sidebar *sidebar = CAST(sidebar, arg);

    sidebar->era++;
    while (!list_is_empty(&sidebar->idle))
        oldest_drop(sidebar);
}

static void on_sync_up(void *arg)
{
    struct sidebar *sidebar = CAST(sidebar, arg);

    on_up(sidebar);
    lane_warm(sidebar, STORE_SYNC, &CHUNK_SPARSE);
}

static void on_bulk_up(void *arg)
{
    struct sidebar *sidebar = CAST(sidebar, arg);

    on_up(sidebar);
    lane_warm(sidebar, STORE_BULK, &CHUNK_DENSE);
}

static void on_bulk_back_up(void *arg)
{
    struct sidebar *sidebar = CAST(sidebar, arg);

    on_up(sidebar);
    lane_warm(sidebar, STORE_BULK_BACK, &CHUNK_BACK);
}

static void on_tick(void *arg)
{
    struct sidebar *sidebar = CAST(sidebar, arg);
    int64_t before_ms = loop_now_ms(sidebar->loop) - IDLE_MAX_MS;

    while (!list_is_empty(&sidebar->idle) &&
           LIST_ITEM(sidebar->idle.next, struct slot, idle_link)->used_ms < before_ms)
        oldest_drop(sidebar);
    if (!list_is_empty(&sidebar->idle))
        loop_timer_set(sidebar->timer, TICK_MS);
}

int sidebar_new(struct loop *loop, struct store *store, const struct sidebar_options *options,
                struct sidebar **ret_sidebar)
{
    struct sidebar *sidebar = calloc(1, sizeof *sidebar);

    if (!sidebar)
        return -ERROR_MEMORY;
    *sidebar =
        (struct sidebar){.tag = TAG(sidebar), .loop = loop, .store = store, .options = *options};
    list_init(&sidebar->idle);
    int r = loop_timer_new(loop, on_tick, sidebar, &sidebar->timer);
    if (r < 0) {
        TAGGED_FREE(sidebar);
        return r;
    }
    store_on_up(store, STORE_SYNC, on_sync_up, sidebar);
    store_on_up(store, STORE_BULK, on_bulk_up, sidebar);
    store_on_up(store, STORE_BULK_BACK, on_bulk_back_up, sidebar);
    *ret_sidebar = sidebar;
    return 0;
}

void sidebar_free(struct sidebar *sidebar)
{
    struct slot *slot;
    struct slot *next;

    if (!sidebar)
        return;
    HASH_ITER(hh, sidebar->slots, slot, next)
    {
        LIST_FOREACH(link, &slot->readings)
        {
            free(LIST_ITEM(link, struct sidebar_reading, link));
        }
        slot_free(slot);
    }
    loop_timer_free(sidebar->timer);
    TAGGED_FREE(sidebar);
}
