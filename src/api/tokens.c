// SPDX-License-Identifier: Apache-2.0
// The token cache: looks up in Postgres which user a token belongs to and caches the result for a
// short time.
#include "tokens.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/metrics.h"
#include "store/token_rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct statement TOKEN = {
    "token",
    "SELECT t.id, t.workspace_id, t.user_id, t.type, t.scopes, t.app_id, u.bot_id, "
    "u.is_admin, " TOKEN_FAULT("t", "u") ", " TOKEN_LEFT_MS(
        "t") ","
             " coalesce(t.last_used, 0) < extract(epoch FROM now())::bigint - 60, "
             "coalesce(t.rate_limit, 0)"
             " FROM tokens t JOIN users u ON u.id = t.user_id WHERE t.digest = $1",
};
static const struct statement TOKEN_USED = {
    "token_used",
    "UPDATE tokens SET last_used = extract(epoch FROM now())::bigint WHERE digest = $1",
};
enum {
    COLUMN_ID,
    COLUMN_WORKSPACE,
    COLUMN_USER,
    COLUMN_TYPE,
    COLUMN_SCOPES,
    COLUMN_APP,
    COLUMN_BOT,
    COLUMN_ADMIN,
    COLUMN_FAULT,
    COLUMN_LEFT_MS,
    COLUMN_STALE,
    COLUMN_RATE_LIMIT
};

enum { TOKEN_LENGTH_MAX = 256 };

// Maximum age of results while other instances' revocations are not received.
enum { BELIEVE_UNHEARD_MS = 500 };

// Doubts outlive every result that was requested before them.
enum { DOUBT_MARGIN_MS = 20000, DOUBTS_MAX = 10000 };

// A token unused for this many times its maximum age is dropped.
enum { IDLE_FACTOR = 150 };

struct token_entry {
    uint32_t tag;
    char digest[DIGEST_HEX_SIZE];
    UT_hash_handle hh;
    struct token_cache *cache;
    struct list waiting; // of struct token_waiter, during a lookup
    struct list turn;    // in the cache's, while other lookups run
    struct list recent;  // in the cache's, most recently looked up last
    bool asking;
    bool is_counted;     // counted among the concurrent lookups
    int64_t asked_ms;    // when the last lookup was sent
    int64_t known_at_ms; // when the lookup of the current result was sent
    int64_t expires_ms;  // on the monotonic clock, converted from Postgres' clock; INT64_MAX: never
    int r;
    struct actor actor;
};

// A token, user or app that may have changed.
struct doubt {
    UT_hash_handle hh;
    struct list link; // in the cache's, oldest first
    char id[EVENT_ID_SIZE];
    int64_t told_ms;
};

struct token_waiter {
    struct list link;
    struct invocation *invocation;
    token_fn *fn;
};

struct token_cache {
    struct store *store;
    struct cache *redis;
    struct doubt *doubts;
    struct list doubts_by_age;
    int64_t all_doubted_ms; // results requested up to this time are invalid
    struct token_entry *entries;
    struct list turns; // entries waiting for a lookup
    struct list recent;
    int64_t believe_ms;
    int64_t entries_max;
    int64_t asked; // concurrent lookups, of tokens not known to be valid
    int64_t asked_max;
};

int token_cache_new(struct store *store, const struct token_cache_options *options,
                    struct token_cache **ret_cache)
{
    struct token_cache *cache = calloc(1, sizeof *cache);

    if (!cache)
        return -ERROR_MEMORY;
    cache->store = store;
    cache->redis = options->redis;
    cache->all_doubted_ms = INT64_MIN;
    cache->believe_ms = options->believe_ms;
    cache->entries_max = options->entries_max;
    cache->asked_max = options->lookups_max;
    list_init(&cache->turns);
    list_init(&cache->recent);
    list_init(&cache->doubts_by_age);
    *ret_cache = cache;
    return 0;
}

static void doubt_drop(struct token_cache *cache, struct doubt *doubt)
{
    HASH_DEL(cache->doubts, doubt);
    list_remove(&doubt->link);
    free(doubt);
}

static struct doubt *doubt_oldest(const struct token_cache *cache)
{
    return list_is_empty(&cache->doubts_by_age)
               ? NULL
               : LIST_ITEM(cache->doubts_by_age.next, struct doubt, link);
}

static void doubts_drop(struct token_cache *cache, int64_t before_ms)
{
    for (struct doubt *oldest = doubt_oldest(cache); oldest && oldest->told_ms < before_ms;
         oldest = doubt_oldest(cache))
        doubt_drop(cache, oldest);
}

static struct doubt *doubt_new(struct token_cache *cache, const char *id)
{
    struct doubt *doubt = calloc(1, sizeof *doubt);

    if (!doubt)
        return NULL;
    snprintf(doubt->id, sizeof doubt->id, "%s", id);
    list_init(&doubt->link);
    HASH_ADD_STR(cache->doubts, id, doubt);
    return doubt;
}

void token_cache_doubt(struct token_cache *cache, const char *id)
{
    int64_t now_ms = clock_monotonic_ms();
    struct doubt *doubt = NULL;

    doubts_drop(cache, now_ms - cache->believe_ms - DOUBT_MARGIN_MS);
    if (id)
        HASH_FIND_STR(cache->doubts, id, doubt);
    if (id && !doubt && HASH_COUNT(cache->doubts) < DOUBTS_MAX)
        doubt = doubt_new(cache, id);
    if (!doubt) { // everything; also if there is no room for another doubt
        cache->all_doubted_ms = now_ms;
        return;
    }
    doubt->told_ms = now_ms;
    list_remove(&doubt->link);
    list_append(&cache->doubts_by_age, &doubt->link);
}

static bool is_doubted(const struct token_cache *cache, const char *id, int64_t asked_ms)
{
    struct doubt *doubt;

    HASH_FIND_STR(cache->doubts, id, doubt);
    return doubt && doubt->told_ms >= asked_ms;
}

// Whether a result requested at `asked_ms` may have changed since.
static bool entry_is_doubted(const struct token_entry *entry, int64_t asked_ms)
{
    const struct token_cache *cache = entry->cache;
    const struct actor *actor = &entry->actor;

    if (cache->all_doubted_ms >= asked_ms)
        return true;
    return cache->doubts && (is_doubted(cache, actor->token_id, asked_ms) ||
                             is_doubted(cache, actor->user_id, asked_ms) ||
                             is_doubted(cache, actor->app_id, asked_ms));
}

static bool entry_is_believed(const struct token_entry *entry)
{
    const struct token_cache *cache = entry->cache;
    bool is_heard = cache->redis && cache_is_subscribed(cache->redis);
    int64_t most_ms =
        is_heard || cache->believe_ms < BELIEVE_UNHEARD_MS ? cache->believe_ms : BELIEVE_UNHEARD_MS;

    return clock_monotonic_ms() - entry->known_at_ms < most_ms &&
           !entry_is_doubted(entry, entry->known_at_ms);
}

static void entry_drop(struct token_entry *entry)
{
    HASH_DEL(entry->cache->entries, entry);
    list_remove(&entry->recent);
    metric_add(METRIC_TOKENS, -1);
    TAGGED_FREE(entry);
}

// Drops two entries unused for long per new one, so that their number falls to those recently used.
static void entries_drop_idle(struct token_cache *cache)
{
    for (int i = 0; i < 2 && !list_is_empty(&cache->recent); i++) {
        struct token_entry *entry = LIST_ITEM(cache->recent.next, struct token_entry, recent);
        if (entry->asking ||
            clock_monotonic_ms() - entry->known_at_ms < IDLE_FACTOR * cache->believe_ms)
            break;
        entry_drop(entry);
    }
}

// Drops entries that nobody waits for: invalid ones, or with `good_too` all.
static void entries_drop(struct token_cache *cache, bool good_too)
{
    struct token_entry *entry, *next;

    HASH_ITER(hh, cache->entries, entry, next)
    {
        if (entry->asking || (entry->r == 0 && !good_too))
            continue;
        entry_drop(entry);
    }
}

// Frees at least half of the cache, so that not every new token has to search for room.
static void entries_make_room(struct token_cache *cache)
{
    int64_t before = HASH_COUNT(cache->entries);

    entries_drop(cache, false);
    if (HASH_COUNT(cache->entries) > cache->entries_max / 2)
        entries_drop(cache, true);
    metric_add(METRIC_TOKENS_DROPPED, before - HASH_COUNT(cache->entries));
}

void token_cache_free(struct token_cache *cache)
{
    if (!cache)
        return;
    entries_drop(cache, true);
    doubts_drop(cache, INT64_MAX);
    free(cache);
}

static int entry_verdict(const struct token_entry *entry)
{
    if (entry->r == 0 && entry->expires_ms <= clock_monotonic_ms())
        return -ERROR_TOKEN_EXPIRED;
    return entry->r;
}

#define COPY(field, column) snprintf(field, sizeof(field), "%s", result_text(result, 0, column))

static void entry_noted(void *arg, const struct store_outcome *outcome)
{
    (void)arg;
    (void)outcome;
}

// Records the token's last use, to the minute.
static void entry_note_use(const struct token_entry *entry)
{
    struct params params = {0};

    params_text(&params, entry->digest);
    store_call(entry->cache->store, STORE_READ, &TOKEN_USED, &params, entry_noted, NULL);
}

static void entry_read(struct token_entry *entry, const struct result *result)
{
    struct actor *actor = &entry->actor;

    if (result_rows(result) == 0) {
        entry->r = -ERROR_INVALID_AUTH;
        return;
    }
    COPY(actor->token_id, COLUMN_ID);
    COPY(actor->workspace_id, COLUMN_WORKSPACE);
    COPY(actor->user_id, COLUMN_USER);
    COPY(actor->scopes, COLUMN_SCOPES);
    COPY(actor->app_id, COLUMN_APP);
    COPY(actor->bot_id, COLUMN_BOT);
    actor->type = result_text(result, 0, COLUMN_TYPE)[0];
    actor->is_admin = result_bool(result, 0, COLUMN_ADMIN);
    actor->rate_limit = result_int(result, 0, COLUMN_RATE_LIMIT);
    entry->expires_ms = result_is_null(result, 0, COLUMN_LEFT_MS)
                            ? INT64_MAX
                            : clock_monotonic_ms() + result_int(result, 0, COLUMN_LEFT_MS);
    if (result_bool(result, 0, COLUMN_STALE))
        entry_note_use(entry);
    if (!result_is_null(result, 0, COLUMN_FAULT))
        entry->r = error_from_code(result_text(result, 0, COLUMN_FAULT));
}

static void entry_ask(struct token_entry *entry);

// Unverified tokens share a few concurrent lookups, and never delay verified ones.
static void turns_go_on(struct token_cache *cache)
{
    while (cache->asked < cache->asked_max && !list_is_empty(&cache->turns)) {
        struct token_entry *entry = LIST_ITEM(cache->turns.next, struct token_entry, turn);
        list_remove(&entry->turn);
        entry->is_counted = true;
        cache->asked++;
        entry_ask(entry);
    }
}

static void entry_answer(void *arg, const struct store_outcome *outcome)
{
    struct token_entry *entry = CAST(token_entry, arg);
    struct list waiting;

    entry->asking = false;
    entry->cache->asked -= entry->is_counted;
    entry->is_counted = false;
    turns_go_on(entry->cache);
    entry->r = outcome->r;
    entry->known_at_ms = entry->asked_ms;
    if (outcome->r == 0)
        entry_read(entry, outcome->result);
    else
        entry->known_at_ms = INT64_MIN / 2; // look it up again next time
    if (outcome->r == 0 && entry_is_doubted(entry, entry->asked_ms)) {
        entry->asking = true; // changed during the lookup
        entry_ask(entry);
        return;
    }
    list_init(&waiting);
    list_append_all(&waiting, &entry->waiting);
    // The callbacks may cause the entry to be dropped.
    struct actor actor = entry->actor;
    int r = entry_verdict(entry);
    LIST_FOREACH(link, &waiting)
    {
        struct token_waiter *waiter = LIST_ITEM(link, struct token_waiter, link);
        list_remove(link);
        waiter->fn(waiter->invocation, r, &actor);
        free(waiter);
    }
}

static struct token_entry *entry_new(struct token_cache *cache, const char *digest)
{
    entries_drop_idle(cache);
    if (HASH_COUNT(cache->entries) >= cache->entries_max)
        entries_make_room(cache);
    bool is_full = HASH_COUNT(cache->entries) >= cache->entries_max;
    struct token_entry *entry = is_full ? NULL : TAGGED_NEW(token_entry);
    if (!entry) {
        metric_add(METRIC_TOKENS_FULL, 1);
        return NULL;
    }
    list_init(&entry->turn);
    list_init(&entry->recent);
    memcpy(entry->digest, digest, DIGEST_HEX_SIZE);
    entry->cache = cache;
    entry->known_at_ms = INT64_MIN / 2;
    list_init(&entry->waiting);
    HASH_ADD(hh, cache->entries, digest, DIGEST_HEX_SIZE - 1, entry);
    metric_add(METRIC_TOKENS, 1);
    return entry;
}

static void entry_ask(struct token_entry *entry)
{
    struct params params = {0};

    entry->asked_ms = clock_monotonic_ms();
    params_text(&params, entry->digest);
    store_call(entry->cache->store, STORE_READ, &TOKEN, &params, entry_answer, entry);
}

static void entry_begin(struct token_entry *entry)
{
    struct token_cache *cache = entry->cache;
    bool was_good = entry->actor.type != 0 && entry->r == 0;

    entry->asking = true;
    list_remove(&entry->recent);
    list_append(&cache->recent, &entry->recent);
    if (was_good) {
        entry_ask(entry);
        return;
    }
    if (cache->asked >= cache->asked_max)
        metric_add(METRIC_TOKENS_WAITED, 1);
    list_append(&cache->turns, &entry->turn);
    turns_go_on(cache);
}

void token_look_up(struct token_cache *cache, const char *token, struct invocation *invocation,
                   token_fn *fn)
{
    char digest[DIGEST_HEX_SIZE];
    struct token_entry *entry;

    if (strlen(token) > TOKEN_LENGTH_MAX) {
        fn(invocation, -ERROR_INVALID_AUTH, NULL);
        return;
    }
    digest_sha256_hex(token, strlen(token), digest);
    HASH_FIND(hh, cache->entries, digest, DIGEST_HEX_SIZE - 1, entry);
    if (!entry)
        entry = entry_new(cache, digest);
    if (entry && !entry->asking && entry_is_believed(entry)) {
        fn(invocation, entry_verdict(entry), &entry->actor);
        return;
    }
    struct token_waiter *waiter = entry ? malloc(sizeof *waiter) : NULL;
    if (!waiter) {
        fn(invocation, -ERROR_BUSY, NULL);
        return;
    }
    *waiter = (struct token_waiter){.invocation = invocation, .fn = fn};
    list_append(&entry->waiting, &waiter->link);
    if (!entry->asking)
        entry_begin(entry);
}
