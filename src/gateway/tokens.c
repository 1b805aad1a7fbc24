// SPDX-License-Identifier: Apache-2.0
// Closes connections whose token is no longer valid.
#include "tokens.h"

#include "connection.h"
#include "core.h"

#include "base/metrics.h"

#include <stdlib.h>
#include <string.h>

// All tokens are asked for within `token_check_ms`, a part at a time: a thousand at once keep
// Postgres busy for as long as a post takes many times over.
enum { TOKEN_PARTS = 10 };

// Those of the given tokens that are no good any more.
static const struct statement bad = {
    "gateway_tokens", "SELECT a.id FROM unnest($1) AS a (id) WHERE NOT EXISTS ("
                      "SELECT FROM tokens t JOIN users u ON u.id = t.user_id"
                      " WHERE t.id = a.id AND t.revoked_at IS NULL AND u.active"
                      " AND (t.expires_at IS NULL OR t.expires_at > extract(epoch FROM now())))"};

static void token_end(struct gateway *gateway, const char *token_id)
{
    LIST_FOREACH(link, &gateway->connections)
    {
        struct connection *c = LIST_ITEM(link, struct connection, link);
        if (c->state != CONNECTION_OPEN || strcmp(c->actor.token_id, token_id) != 0)
            continue;
        metric_add(METRIC_SOCKETS_REVOKED, 1);
        c->ops->announce(c, ANNOUNCE_REVOKED);
        connection_doom(c, CLOSE_REVOKED, "token revoked");
    }
}

static void tokens_wait(struct gateway *gateway, bool is_checked)
{
    if (is_checked)
        gateway->tokens.part = (gateway->tokens.part + 1) % TOKEN_PARTS;
    loop_timer_set(gateway->tokens.timer, gateway->options.token_check_ms / TOKEN_PARTS);
}

static void on_bad(void *arg, const struct store_outcome *outcome)
{
    struct gateway *gateway = arg;
    if (!gateway_answer(gateway))
        return;
    tokens_wait(gateway, outcome->r == 0);
    for (int row = 0; outcome->r == 0 && row < result_rows(outcome->result); row++)
        token_end(gateway, result_text(outcome->result, row, 0));
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

// The tokens of open sockets that are of this turn's part, sorted; the caller frees the array (NULL
// without memory), not its ids.
static const char **tokens_list(const struct gateway *gateway, size_t *ret_count)
{
    const char **ids = calloc((size_t)gateway->connection_count + 1, sizeof *ids);
    size_t count = 0;
    LIST_FOREACH(link, &gateway->connections)
    {
        const struct connection *c = LIST_ITEM(link, struct connection, link);
        if (ids && c->state == CONNECTION_OPEN &&
            is_of_part(c->actor.token_id, gateway->tokens.part))
            ids[count++] = c->actor.token_id;
    }
    if (count > 1)
        qsort(ids, count, sizeof *ids, id_compare);
    *ret_count = count;
    return ids;
}

void tokens_on_timer(void *arg)
{
    struct gateway *gateway = arg;
    CLEANUP_PARAMS struct params params = {0};
    size_t count;
    CLEANUP_FREE const char **ids = tokens_list(gateway, &count);
    if (count == 0) {
        tokens_wait(gateway, true);
        return;
    }
    params_open_text_array(&params);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(ids[i], ids[i - 1]) != 0)
            params_element_text(&params, ids[i]);
    params_close_array(&params);
    gateway_ask(gateway);
    store_call(gateway->store, STORE_READ, &bad, &params, on_bad, gateway);
}
