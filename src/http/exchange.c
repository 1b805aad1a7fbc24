// SPDX-License-Identifier: Apache-2.0
// The life of an exchange: creates, recycles, names and frees it.
#include "exchange.h"

#include "long_reply.h"

#include "base/check.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum {
    REQUEST_ID_LENGTH_MAX = 128,
    HEX_LENGTH = 16,
    EXCHANGE_SPARES_MAX = 256,
    REPLY_HEAD_MAX_BYTES = 32768
};

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
    buffer_done(&exchange->text);
    if (server)
        long_reply_free(server, &exchange->request.reply);
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
    const struct server_settings *settings = &server->options.settings;
    struct exchange *exchange = exchange_alloc(server);
    if (!exchange)
        return NULL;
    memset(&exchange->link, 0, offsetof(struct exchange, upload) - offsetof(struct exchange, link));
    request_init(&exchange->request, settings->reply_max_bytes, ops->send);
    list_init(&exchange->link);
    exchange->tag = TAG(exchange);
    exchange->server = server;
    exchange->connection = connection;
    exchange->ops = ops;
    exchange->content_type = "application/json; charset=utf-8";
    buffer_init(&exchange->body.bytes, (size_t)settings->body_max_bytes + 1);
    buffer_init(&exchange->text, REPLY_HEAD_MAX_BYTES);
    list_init(&exchange->job.link);
    exchange->request.load = ops->load;
    exchange->request.stream = ops->stream;
    exchange->request.intake = &server->intake;
    exchange->request.outgo = &server->outgo;
    exchange->request.arguments.values_max = settings->json_values_max;
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
    exchange->connection = NULL;
    if (exchange->is_sending) // freed when that is done
        return;
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
