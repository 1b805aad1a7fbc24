// SPDX-License-Identifier: Apache-2.0
// The life of an exchange: creates, recycles, names and frees it.
#include "exchange.h"

#include "long_reply.h"

#include "base/check.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { REQUEST_ID_LENGTH_MAX = 128, HEX_LENGTH = 16, EXCHANGE_SPARES_MAX = 256 };

// An exchange is 3 KiB, which malloc() does not return quickly: reuse some.
static struct exchange *exchange_alloc(struct server *server)
{
    if (list_is_empty(&server->spares))
        return malloc(sizeof(struct exchange));
    struct exchange *exchange = LIST_ITEM(server->spares.next, struct exchange, link);
    list_remove(&exchange->link);
    server->spares_count--;
    return exchange;
}

void exchange_free(struct exchange *exchange)
{
    struct server *server = exchange->server;
    list_remove(&exchange->link);
    buffer_done(&exchange->body.bytes);
    buffer_done(&exchange->rest);
    buffer_done(&exchange->text);
    mhd_takeover_done(&exchange->takeover);
    if (server)
        long_reply_free(long_reply_take(server, &exchange->request.reply));
    request_done(&exchange->request);
    tag_clear(&exchange->tag);
    if (server && exchange->started) {
        ASSERT(server->calls_count > 0);
        server->calls_count--;
    }
    if (!server || server->spares_count >= EXCHANGE_SPARES_MAX) {
        free(exchange);
        return;
    }
    list_append(&server->spares, &exchange->link);
    server->spares_count++;
}

void exchanges_free_spares(struct server *server)
{
    LIST_FOREACH(link, &server->spares)
    {
        list_remove(link);
        free(LIST_ITEM(link, struct exchange, link));
    }
}

struct exchange *exchange_new(struct http_connection *connection, const struct exchange_ops *ops)
{
    struct server *server = connection->server;
    struct exchange *exchange = exchange_alloc(server);
    if (!exchange)
        return NULL;
    request_init(&exchange->request, server->options.settings.reply_max_bytes, ops->send);
    list_init(&exchange->link);
    exchange->tag = TAG(exchange);
    exchange->ops = ops;
    exchange->server = server;
    exchange->mhd = connection->mhd;
    exchange->connection = connection;
    exchange->head = (struct http_head){0};
    exchange->head_text = NULL;
    exchange->query = NULL;
    exchange->content_type = "application/json; charset=utf-8";
    exchange->allow = NULL;
    exchange->origin = NULL;
    exchange->is_preflight = false;
    exchange->page = NULL;
    exchange->body = (struct body){0};
    buffer_init(&exchange->body.bytes, (size_t)server->options.settings.body_max_bytes + 1);
    mhd_takeover_init(&exchange->takeover);
    buffer_init(&exchange->rest, MHD_MEMORY_BYTES);
    buffer_init(&exchange->text, 0);
    exchange->state = EXCHANGE_LINE;
    exchange->is_call = false;
    exchange->started = false;
    exchange->is_chunked = false;
    exchange->is_gzip = false;
    list_init(&exchange->job.link);
    exchange->request.load = ops->load;
    exchange->request.intake = &server->intake;
    exchange->request.outgo = &server->outgo;
    exchange->request.arguments.values_max = server->options.settings.json_values_max;
    return exchange;
}

bool exchange_name_is_plain(const char *text, size_t length_max)
{
    size_t length = 0;
    for (; text[length] != '\0'; length++) {
        char byte = text[length];
        bool alnum = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9');
        if (length >= length_max || (!alnum && !strchr("._-", byte)))
            return false;
    }
    return length > 0;
}

static void hex_print(uint64_t number, char *ret_text)
{
    for (int i = HEX_LENGTH - 1; i >= 0; i--, number >>= 4)
        ret_text[i] = "0123456789abcdef"[number & 15];
}

int exchange_name(struct exchange *exchange)
{
    struct server *server = exchange->server;
    struct request *request = &exchange->request;
    const char *given = exchange->head.request_id;
    char made[2 * HEX_LENGTH];
    if (request->id[0] != '\0')
        return 0;
    if (given && exchange_name_is_plain(given, REQUEST_ID_LENGTH_MAX)) {
        request->id = given;
        return 0;
    }
    hex_print(server->id_base, made);
    hex_print(++server->id_count, made + HEX_LENGTH);
    const char *id = arena_copy(&request->arena, made, sizeof made);
    if (!id)
        return -ERROR_MEMORY;
    request->id = id;
    return 0;
}

// A handler that has not replied yet still uses the request: its reply frees it.
void exchange_leave(struct exchange *exchange)
{
    exchange->mhd = NULL;
    exchange->connection = NULL;
    if (!exchange->started || exchange->request.replied)
        exchange_free(exchange);
}

void exchange_ready(struct exchange *exchange)
{
    if (!exchange->connection)
        exchange_free(exchange);
    else if (exchange->state == EXCHANGE_SUSPENDED || exchange->state == EXCHANGE_ASKED)
        exchange->ops->resume(exchange);
}

void exchanges_abandon(struct server *server)
{
    LIST_FOREACH(link, &server->calls)
    {
        struct exchange *exchange = LIST_ITEM(link, struct exchange, link);
        if ((exchange->state != EXCHANGE_SUSPENDED && exchange->state != EXCHANGE_ASKED) ||
            exchange->request.replied || !exchange->mhd)
            continue;
        exchange->state = EXCHANGE_DETACHED;
        MHD_resume_connection(exchange->mhd);
    }
}

void exchanges_forget(struct server *server)
{
    LIST_FOREACH(link, &server->calls)
    {
        struct exchange *exchange = LIST_ITEM(link, struct exchange, link);
        list_remove(link);
        exchange->server = NULL;
        exchange->request.intake = NULL;
        exchange->request.outgo = NULL;
    }
}
