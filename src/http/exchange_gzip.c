// SPDX-License-Identifier: Apache-2.0
// Compresses replies for callers who take gzip: short ones at once, others in pieces, between which
// the loop serves others.
#include "exchange_gzip.h"

#include "gzip.h"

// About a millisecond.
enum { PIECE_BYTES = 65536 };

static bool is_wanted(const struct exchange *exchange)
{
    const struct request *request = &exchange->request;
    bool is_due = exchange->state == EXCHANGE_ANSWERING || exchange->state == EXCHANGE_SUSPENDED;

    if (!exchange->server || !exchange->connection || !exchange->is_call || !is_due ||
        request->is_secret)
        return false;
    int64_t min = exchange->server->options.gzip_min_bytes;
    return min > 0 && (int64_t)request->reply.length > min &&
           gzip_is_accepted(exchange->head.accept_encoding);
}

// Compresses some more. True: the reply is ready.
static bool gzip_piece(struct exchange *exchange)
{
    if (!gzip_go_on(exchange->gzip, PIECE_BYTES))
        return false;
    exchange->is_gzip = gzip_end(exchange->gzip, &exchange->request.reply);
    exchange_gzip_drop(exchange);
    return true;
}

static void gzip_soon(struct server *server);

// A piece of the one whose turn it is. Who has gone meanwhile needs none.
static void gzip_turn(void *arg)
{
    struct server *server = arg;
    struct exchange *exchange = LIST_ITEM(server->gzips.next, struct exchange, gzip_link);

    list_remove(&exchange->gzip_link);
    if (!exchange->connection) {
        exchange_free(exchange);
    } else if (gzip_piece(exchange)) {
        exchange->request.replied = true;
        exchange_ready(exchange);
    } else {
        list_append(&server->gzips, &exchange->gzip_link);
    }
    gzip_soon(server);
}

static void gzip_soon(struct server *server)
{
    if (!list_is_empty(&server->gzips) && loop_post(server->loop, gzip_turn, server) < 0)
        gzip_turn(server);
}

// Compresses the reply, if it may be. True: it goes on in later turns.
static bool is_compressed_later(struct exchange *exchange)
{
    struct server *server = exchange->server;

    if (!is_wanted(exchange))
        return false;
    exchange->gzip = server->gzip_spare ? TAKE(server->gzip_spare) : gzip_new();
    if (!exchange->gzip)
        return false;
    gzip_begin(exchange->gzip, &exchange->request.reply);
    if (gzip_piece(exchange))
        return false;
    exchange->request.replied = false;
    bool is_first = list_is_empty(&server->gzips);
    list_append(&server->gzips, &exchange->gzip_link);
    if (is_first)
        gzip_soon(server);
    return true;
}

void exchange_send(struct request *request)
{
    struct exchange *exchange = (struct exchange *)request;
    if (!is_compressed_later(exchange))
        exchange_ready(exchange);
}
