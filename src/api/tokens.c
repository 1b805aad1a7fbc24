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
#include "jwt_login.h"
#include "login/jwt.h"
#include "store/token_rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct statement TOKEN = {
    "token",
    "SELECT t.id, t.workspace_id, t.user_id, t.type, t.scopes, t.app_id, u.bot_id, "
    "u.is_admin, " TOKEN_BOT("u") ", " TOKEN_FAULT("t", "u") ", " TOKEN_LEFT_MS(
        "t") ","
             " coalesce(t.last_used, 0) < extract(epoch FROM now())::bigint - 60, "
             "coalesce(t.rate_limit, 0)"
             " FROM tokens t JOIN users u ON u.id = t.user_id WHERE t.digest = $1",
};
static const struct statement TOKEN_USED = {
    "token_used",
    "UPDATE tokens SET last_used = extract(epoch FROM now())::bigint WHERE digest = $1",
};
// The same columns of an incoming webhook: it is its bot, and has no other rights.
static const struct statement WEBHOOK = {
    "webhook_token",
    "SELECT w.id, w.workspace_id, w.user_id, 'bot', '', NULL, w.id, false, " TOKEN_BOT(
        "u") ","
             " CASE WHEN NOT u.active THEN 'account_inactive' END, NULL::bigint, false, 0"
             " FROM webhooks w JOIN users u ON u.id = w.user_id WHERE w.digest = $1",
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
    COLUMN_BOT_APP,
    COLUMN_BOT_NAME,
    COLUMN_BOT_UPDATED,
    COLUMN_FAULT,
    COLUMN_LEFT_MS,
    COLUMN_STALE,
    COLUMN_RATE_LIMIT
};

enum { TOKEN_LENGTH_MAX = 256 };

// Maximum age of results while other instances' revocations are not received.
enum { UNSUBSCRIBED_AGE_MS = 500 };

// Invalidations outlive every result that was requested before them.
enum { INVALIDATION_MARGIN_MS = 20000, INVALIDATIONS_MAX = 10000 };

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
    bool is_logged_in;   // the current lookup follows the login of a JWT
    int64_t asked_ms;    // when the last lookup was sent
    int64_t known_at_ms; // when the lookup of the current result was sent
    int64_t expires_ms;  // on the monotonic clock, converted from Postgres' clock; INT64_MAX: never
    int r;
    struct actor actor;
};

// A token, user or app that may have changed.
struct invalidation {
    UT_hash_handle hh;
    struct list link; // in the cache's, oldest first
    char id[EVENT_ID_SIZE];
    int64_t at_ms;
};

struct token_waiter {
    struct list link;
    struct invocation *invocation;
    token_fn *fn;
};

struct token_cache {
    struct api *api;
    struct store *store;
    struct cache *redis;
    struct invalidation *invalidations;
    struct list invalidations_by_age;
    int64_t all_invalidated_ms; // results requested up to this time are invalid
    struct token_entry *entries;
    struct list turns; // entries waiting for a lookup
    struct list recent;
    const struct statement *statement;
    int64_t max_age_ms;
    int64_t entries_max;
    int64_t asked; // concurrent lookups, of tokens not known to be valid
    int64_t asked_max;
};

int token_cache_new(struct api *api, const struct token_cache_options *options,
                    struct token_cache **ret_cache)
{
    struct token_cache *cache = calloc(1, sizeof *cache);

    if (!cache)
        return -ERROR_MEMORY;
    cache->api = api;
    cache->store = api->options.store;
    cache->redis = options->redis;
    cache->statement = options->of_webhooks ? &WEBHOOK : &TOKEN;
    cache->all_invalidated_ms = INT64_MIN;
    cache->max_age_ms = options->max_age_ms;
    cache->entries_max = options->entries_max;
    cache->asked_max = options->lookups_max;
    list_init(&cache->turns);
    list_init(&cache->recent);
    list_init(&cache->invalidations_by_age);
    *ret_cache = cache;
    return 0;
}

static void invalidation_drop(struct token_cache *cache, struct invalidation *invalidation)
{
    HASH_DEL(cache->invalidations, invalidation);
    list_remove(&invalidation->link);
    free(invalidation);
}

static struct invalidation *invalidation_oldest(const struct token_cache *cache)
{
    return list_is_empty(&cache->invalidations_by_age)
               ? NULL
               : LIST_ITEM(cache->invalidations_by_age.next, struct invalidation, link);
}

static void invalidations_drop(struct token_cache *cache, int64_t before_ms)
{
    for (struct invalidation *oldest = invalidation_oldest(cache);
         oldest && oldest->at_ms < before_ms; oldest = invalidation_oldest(cache))
        invalidation_drop(cache, oldest);
}

static struct invalidation *invalidation_new(struct token_cache *cache, const char *id)
{
    struct invalidation *invalidation = calloc(1, sizeof *invalidation);

    if (!invalidation)
        return NULL;
    snprintf(invalidation->id, sizeof invalidation->id, "%s", id);
    list_init(&invalidation->link);
    HASH_ADD_STR(cache->invalidations, id, invalidation);
    return invalidation;
}

void token_cache_invalidate(struct token_cache *cache, const char *id)
{
    int64_t now_ms = clock_monotonic_ms();
    struct invalidation *invalidation = NULL;

    invalidations_drop(cache, now_ms - cache->max_age_ms - INVALIDATION_MARGIN_MS);
    if (id)
        HASH_FIND_STR(cache->invalidations, id, invalidation);
    if (id && !invalidation && HASH_COUNT(cache->invalidations) < INVALIDATIONS_MAX)
        invalidation = invalidation_new(cache, id);
    if (!invalidation) { // everything; also if there is no room for another invalidation
        cache->all_invalidated_ms = now_ms;
        return;
    }
    invalidation->at_ms = now_ms;
    list_remove(&invalidation->link);
    list_append(&cache->invalidations_by_age, &invalidation->link);
}

static bool is_invalidated(const struct token_cache *cache, const char *id, int64_t asked_ms)
{
    struct invalidation *invalidation;

    HASH_FIND_STR(cache->invalidations, id, invalidation);
    return invalidation && invalidation->at_ms >= asked_ms;
}

// Whether a result requested at `asked_ms` may have changed since.
static bool entry_is_invalidated(const struct token_entry *entry, int64_t asked_ms)
{
    const struct token_cache *cache = entry->cache;
    const struct actor *actor = &entry->actor;

    if (cache->all_invalidated_ms >= asked_ms)
        return true;
    return cache->invalidations && (is_invalidated(cache, actor->token_id, asked_ms) ||
                                    is_invalidated(cache, actor->user_id, asked_ms) ||
                                    is_invalidated(cache, actor->app_id, asked_ms));
}

static bool entry_is_fresh(const struct token_entry *entry)
{
    const struct token_cache *cache = entry->cache;
    bool is_subscribed = cache->redis && cache_is_subscribed(cache->redis);
    int64_t most_ms = is_subscribed || cache->max_age_ms < UNSUBSCRIBED_AGE_MS
                          ? cache->max_age_ms
                          : UNSUBSCRIBED_AGE_MS;

    return clock_monotonic_ms() - entry->known_at_ms < most_ms &&
           !entry_is_invalidated(entry, entry->known_at_ms);
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
            clock_monotonic_ms() - entry->known_at_ms < IDLE_FACTOR * cache->max_age_ms)
            break;
        entry_drop(entry);
    }
}

// Drops entries that nobody waits for: invalid ones, or with `valid_too` all.
static void entries_drop(struct token_cache *cache, bool valid_too)
{
    struct token_entry *entry, *next;

    HASH_ITER(hh, cache->entries, entry, next)
    {
        if (entry->asking || (entry->r == 0 && !valid_too))
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
    invalidations_drop(cache, INT64_MAX);
    free(cache);
}

static int entry_verdict(const struct token_entry *entry)
{
    if (entry->r == 0 && entry->expires_ms <= clock_monotonic_ms())
        return -ERROR_TOKEN_EXPIRED;
    return entry->r;
}

#define COPY(field, column) snprintf(field, sizeof(field), "%s", result_text(result, 0, column))

static void on_use_recorded(void *arg, const struct store_outcome *outcome)
{
    (void)arg;
    (void)outcome;
}

// Records the token's last use, to the minute.
static void entry_record_use(const struct token_entry *entry)
{
    struct params params = {0};

    params_text(&params, entry->digest);
    store_call(entry->cache->store, STORE_READ, &TOKEN_USED, &params, on_use_recorded, NULL);
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
    COPY(actor->bot.app_id, COLUMN_BOT_APP);
    COPY(actor->bot.name, COLUMN_BOT_NAME);
    actor->bot.updated = result_int(result, 0, COLUMN_BOT_UPDATED);
    actor->type = result_text(result, 0, COLUMN_TYPE)[0];
    actor->is_admin = result_bool(result, 0, COLUMN_ADMIN);
    actor->rate_limit = result_int(result, 0, COLUMN_RATE_LIMIT);
    entry->expires_ms = result_is_null(result, 0, COLUMN_LEFT_MS)
                            ? INT64_MAX
                            : clock_monotonic_ms() + result_int(result, 0, COLUMN_LEFT_MS);
    if (result_bool(result, 0, COLUMN_STALE))
        entry_record_use(entry);
    if (!result_is_null(result, 0, COLUMN_FAULT))
        entry->r = error_from_code(result_text(result, 0, COLUMN_FAULT));
}

static void entry_ask(struct token_entry *entry);

// Unverified tokens share a few concurrent lookups, and never delay verified ones.
static void lookups_advance(struct token_cache *cache)
{
    while (cache->asked < cache->asked_max && !list_is_empty(&cache->turns)) {
        struct token_entry *entry = LIST_ITEM(cache->turns.next, struct token_entry, turn);
        list_remove(&entry->turn);
        entry->is_counted = true;
        cache->asked++;
        entry_ask(entry);
    }
}

// The lookup has ended.
static void entry_settle(struct token_entry *entry, int r, const struct result *result)
{
    struct list waiting;

    entry->asking = false;
    entry->cache->asked -= entry->is_counted;
    entry->is_counted = false;
    lookups_advance(entry->cache);
    entry->r = r;
    entry->known_at_ms = entry->asked_ms;
    if (result)
        entry_read(entry, result);
    else if (error_http_status(r) >= 500)
        entry->known_at_ms = INT64_MIN / 2; // look it up again next time
    if (result && entry_is_invalidated(entry, entry->asked_ms)) {
        entry->asking = true; // changed during the lookup
        entry_ask(entry);
        return;
    }
    list_init(&waiting);
    list_append_all(&waiting, &entry->waiting);
    // The callbacks may cause the entry to be dropped.
    struct actor actor = entry->actor;
    r = entry_verdict(entry);
    LIST_FOREACH(link, &waiting)
    {
        struct token_waiter *waiter = LIST_ITEM(link, struct token_waiter, link);
        list_remove(link);
        waiter->fn(waiter->invocation, r, &actor);
        free(waiter);
    }
}

// A bearer is not told what is wrong with a JWT that nobody vouches for.
static int bearer_error(const struct jwt_login_outcome *outcome)
{
    switch (-outcome->r) {
    case ERROR_INVALID_TOKEN:
        return outcome->is_genuine ? outcome->r : -ERROR_INVALID_AUTH;
    case ERROR_USER_NOT_FOUND:
    case ERROR_INVALID_ARGUMENTS:
        return -ERROR_INVALID_AUTH;
    default:
        return outcome->r;
    }
}

static void on_logged_in(void *arg, const struct jwt_login_outcome *outcome)
{
    struct token_entry *entry = CAST(token_entry, arg);

    if (outcome->r < 0)
        entry_settle(entry, bearer_error(outcome), NULL);
    else
        entry_ask(entry); // its token is stored now
}

// Whether the token is a JWT that nobody has logged in with yet: tries that.
static bool entry_log_in(struct token_entry *entry)
{
    struct jwt_login_options options = {.workspace = ""};
    const struct token_waiter *waiter = LIST_ITEM(entry->waiting.next, struct token_waiter, link);

    options.jwt = request_token(waiter->invocation->request);
    if (entry->is_logged_in || !jwt_is_like(options.jwt))
        return false;
    entry->is_logged_in = true;
    memcpy(options.digest, entry->digest, sizeof options.digest);
    jwt_login(entry->cache->api, &options, on_logged_in, entry);
    return true;
}

static void entry_answer(void *arg, const struct store_outcome *outcome)
{
    struct token_entry *entry = CAST(token_entry, arg);
    bool is_unknown = outcome->r == 0 && result_rows(outcome->result) == 0;

    if (!is_unknown || !entry_log_in(entry))
        entry_settle(entry, outcome->r, outcome->r == 0 ? outcome->result : NULL);
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
    store_call(entry->cache->store, STORE_READ, entry->cache->statement, &params, entry_answer,
               entry);
}

static void entry_begin(struct token_entry *entry)
{
    struct token_cache *cache = entry->cache;
    bool was_valid = entry->actor.type != 0 && entry->r == 0;

    entry->asking = true;
    entry->is_logged_in = false;
    list_remove(&entry->recent);
    list_append(&cache->recent, &entry->recent);
    if (was_valid) {
        entry_ask(entry);
        return;
    }
    if (cache->asked >= cache->asked_max)
        metric_add(METRIC_TOKENS_WAITED, 1);
    list_append(&cache->turns, &entry->turn);
    lookups_advance(cache);
}

void token_look_up(struct token_cache *cache, const char *token, struct invocation *invocation,
                   token_fn *fn)
{
    char digest[DIGEST_HEX_SIZE];
    struct token_entry *entry;

    bool is_jwt = jwt_is_like(token);
    if (strlen(token) > (is_jwt ? JWT_BYTES_MAX : TOKEN_LENGTH_MAX)) {
        fn(invocation, is_jwt ? -ERROR_INVALID_TOKEN : -ERROR_INVALID_AUTH, NULL);
        return;
    }
    digest_sha256_hex(token, strlen(token), digest);
    HASH_FIND(hh, cache->entries, digest, DIGEST_HEX_SIZE - 1, entry);
    if (!entry)
        entry = entry_new(cache, digest);
    if (entry && !entry->asking && entry_is_fresh(entry)) {
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
