// SPDX-License-Identifier: Apache-2.0
// Closes connections whose token is no longer valid: at once after a message about the token, its
// user or its app, otherwise in rounds over all tokens.
#include "token_sweep.h"

#include "../connection/connection.h"
#include "../core.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "store/token_rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A round checks all tokens, a part at a time: a thousand at once would keep Postgres busy for many
// times the duration of a post.
enum { TOKEN_PARTS = 10 };

// Of the given tokens, those that are no longer valid.
static const struct statement bad = {"gateway_tokens",
                                     "SELECT a.id FROM unnest($1) AS a (id) WHERE NOT EXISTS ("
                                     "SELECT FROM tokens t JOIN users u ON u.id = t.user_id"
                                     " WHERE t.id = a.id AND " TOKEN_IS_GOOD("t", "u") ")"};

// Ids from messages are collected for SUSPECT_MS and checked together; beyond SUSPECTS_MAX, all
// tokens are checked.
enum { SUSPECT_MS = 20, SUSPECTS_MAX = 1000 };

// The duration of a round while messages may be missed, and of one round after that.
enum { EXPEDITED_MS = 3000 };

struct token_sweep {
    unsigned part;       // the next part to check
    int expedited_parts; // how many parts must still be checked soon
    struct loop_timer *timer;
    struct suspect_id *suspects; // ids to check at suspect_timer
    struct loop_timer *suspect_timer;
    int64_t notified_ms; // when the last message arrived or may have been missed; 0: never
};

struct suspect_id {
    UT_hash_handle hh;
    char id[EVENT_ID_SIZE];
};

static void token_end(struct connection *c)
{
    metric_add(METRIC_SOCKETS_REVOKED, 1);
    c->ops->announce(c, ANNOUNCE_REVOKED);
    connection_close(c, CLOSE_REVOKED, "token revoked");
}

static void token_end_all(struct gateway *gateway, const char *token_id)
{
    LIST_FOREACH(link, &gateway->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, link);
        if (c->state == CONNECTION_OPEN && strcmp(c->actor.token_id, token_id) == 0)
            token_end(c);
    }
}

static void timer_start(struct gateway *gateway)
{
    int64_t round_ms = gateway->options.settings.token_check_ms;
    if (gateway->token_sweep->expedited_parts > 0 && round_ms > EXPEDITED_MS)
        round_ms = EXPEDITED_MS;
    loop_timer_set(gateway->token_sweep->timer, round_ms / TOKEN_PARTS);
}

static void part_checked(struct gateway *gateway)
{
    struct token_sweep *sweep = gateway->token_sweep;
    sweep->part = (sweep->part + 1) % TOKEN_PARTS;
    if (sweep->expedited_parts > 0)
        sweep->expedited_parts--;
}

void token_sweep_expedite(struct gateway *gateway)
{
    bool is_new = gateway->token_sweep->expedited_parts == 0;
    gateway->token_sweep->expedited_parts = TOKEN_PARTS;
    gateway->token_sweep->notified_ms = loop_now_ms(gateway->loop);
    if (is_new)
        timer_start(gateway);
}

static void bad_end(struct gateway *gateway, const struct result *result)
{
    for (int row = 0; row < result_rows(result); row++)
        token_end_all(gateway, result_text(result, row, 0));
}

static void on_part_checked(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = CAST(gateway, arg);
    if (!gateway_answer(gateway))
        return;
    if (outcome->r == 0) {
        part_checked(gateway);
        bad_end(gateway, outcome->result);
    }
    timer_start(gateway);
}

static void on_suspects_checked(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = CAST(gateway, arg);
    if (!gateway_answer(gateway))
        return;
    if (outcome->r == 0)
        bad_end(gateway, outcome->result);
    else
        token_sweep_expedite(gateway);
}

static int id_compare(const void *left, const void *right)
{
    const char *const *a = left, *const *b = right;
    return strcmp(*a, *b);
}

static bool is_of_part(const char *token_id, unsigned part)
{
    unsigned sum = 0;
    for (const char *c = token_id; *c; c++)
        sum += (unsigned char)*c;
    return sum % TOKEN_PARTS == part;
}

static bool is_of_turn(const struct connection *c)
{
    return is_of_part(c->actor.token_id, c->gateway->token_sweep->part);
}

static bool id_is_suspect(const struct gateway *gateway, const char *id)
{
    struct suspect_id *suspect;
    HASH_FIND_STR(gateway->token_sweep->suspects, id, suspect);
    return suspect != NULL;
}

static bool is_suspect(const struct connection *c)
{
    return c->is_suspect || id_is_suspect(c->gateway, c->actor.token_id) ||
           id_is_suspect(c->gateway, c->actor.user_id) ||
           id_is_suspect(c->gateway, c->actor.app_id);
}

typedef bool connection_is_fn(const struct connection *c);

// The tokens of open connections for which `is_asked` is true, sorted. The caller frees the array,
// not its ids. NULL: out of memory.
static const char **tokens_list(const struct gateway *gateway, connection_is_fn *is_asked,
                                size_t *ret_count)
{
    const char **ids = calloc((size_t)gateway->connection_count + 1, sizeof *ids);
    size_t count = 0;
    LIST_FOREACH(link, &gateway->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, link);
        if (ids && c->state == CONNECTION_OPEN && is_asked(c))
            ids[count++] = c->actor.token_id;
    }
    if (count > 1)
        qsort(ids, count, sizeof *ids, id_compare);
    *ret_count = count;
    return ids;
}

// Whether there are tokens to check: then `fn` is called with those that are no longer valid.
static bool tokens_ask(struct gateway *gateway, connection_is_fn *is_asked, store_fn *fn)
{
    CLEANUP_PARAMS struct params params = {0};
    size_t count;
    CLEANUP_FREE const char **ids = tokens_list(gateway, is_asked, &count);
    if (count == 0)
        return false;
    params_open_text_array(&params);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(ids[i], ids[i - 1]) == 0)
            continue;
        params_element_text(&params, ids[i]);
        metric_add(METRIC_SOCKET_TOKENS_CHECKED, 1);
    }
    params_close_array(&params);
    gateway_ask(gateway);
    store_call(gateway->store, STORE_READ, &bad, &params, fn, gateway);
    return true;
}

static void on_timer(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    if (tokens_ask(gateway, is_of_turn, on_part_checked))
        return;
    part_checked(gateway);
    timer_start(gateway);
}

static void suspects_drop(struct gateway *gateway)
{
    struct suspect_id *suspect, *next;
    HASH_ITER(hh, gateway->token_sweep->suspects, suspect, next)
    {
        HASH_DEL(gateway->token_sweep->suspects, suspect);
        free(suspect);
    }
}

static void on_suspect_timer(void *arg)
{
    struct gateway *gateway = CAST(gateway, arg);
    (void)tokens_ask(gateway, is_suspect, on_suspects_checked);
    LIST_FOREACH(link, &gateway->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, link);
        if (c->state == CONNECTION_OPEN)
            c->is_suspect = false;
    }
    suspects_drop(gateway);
}

void gateway_session_changed(struct gateway *gateway, const char *id)
{
    struct token_sweep *sweep = gateway->token_sweep;
    bool is_first = !sweep->suspects;
    sweep->notified_ms = loop_now_ms(gateway->loop);
    if (id_is_suspect(gateway, id))
        return;
    bool is_full = HASH_COUNT(sweep->suspects) >= SUSPECTS_MAX;
    struct suspect_id *suspect = is_full ? NULL : calloc(1, sizeof *suspect);
    if (!suspect) {
        token_sweep_expedite(gateway);
        return;
    }
    snprintf(suspect->id, sizeof suspect->id, "%s", id);
    HASH_ADD_STR(sweep->suspects, id, suspect);
    if (is_first)
        loop_timer_set(sweep->suspect_timer, SUSPECT_MS);
}

void token_sweep_on_message(struct gateway *gateway, const char *data, size_t length)
{
    if (length > 0 && length < EVENT_ID_SIZE && strlen(data) == length)
        gateway->options.on_session(gateway->options.arg, data);
}

void token_sweep_on_open(struct connection *c)
{
    struct token_sweep *sweep = c->gateway->token_sweep;
    if (sweep->notified_ms == 0 || sweep->notified_ms < c->asked_ms)
        return;
    c->is_suspect = true;
    if (!sweep->suspects)
        loop_timer_set(sweep->suspect_timer, SUSPECT_MS);
}

void token_sweep_tick(struct connection *c, int64_t now_ms)
{
    if (c->state == CONNECTION_OPEN && c->expires_ms > 0 && now_ms >= c->expires_ms)
        token_end(c);
}

int token_sweep_new(struct gateway *gateway)
{
    struct token_sweep *sweep = gateway->token_sweep = memory_must_new(sizeof *sweep);
    int r = loop_timer_new(gateway->loop, on_timer, gateway, &sweep->timer);
    if (r >= 0)
        r = loop_timer_new(gateway->loop, on_suspect_timer, gateway, &sweep->suspect_timer);
    if (r >= 0)
        loop_timer_set(sweep->timer, gateway->options.settings.token_check_ms);
    return r;
}

void token_sweep_free(struct gateway *gateway)
{
    if (!gateway->token_sweep)
        return;
    suspects_drop(gateway);
    loop_timer_free(gateway->token_sweep->timer);
    loop_timer_free(gateway->token_sweep->suspect_timer);
    free(TAKE(gateway->token_sweep));
}
