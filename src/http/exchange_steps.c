// SPDX-License-Identifier: Apache-2.0
// The steps of every request, whoever reads its connection: head, route, body, call, reply.
#include "exchange_steps.h"

#include "exchange_admission.h"
#include "exchange_reply.h"
#include "http_connection.h"

#include "base/error.h"
#include "base/metrics.h"
#include "http/cors.h"

#include <string.h>
#include <strings.h>

enum {
    METHOD_LENGTH_MAX = 64,
    BODY_RETRY_S = 1 // Retry-After for a body refused for lack of room
};

static const char *bearer_token(const char *authorization)
{
    static const char scheme[] = "Bearer ";
    if (!authorization || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return "";
    const char *token = authorization + sizeof scheme - 1;
    return token + strspn(token, " ");
}

int exchange_store_head(struct exchange *exchange)
{
    struct request *request = &exchange->request;
    const struct http_head *head = &exchange->head;
    if (exchange_name(exchange) < 0)
        return -ERROR_MEMORY;
    request->token = bearer_token(head->authorization);
    request->idempotency_key = head->idempotency_key ? head->idempotency_key : "";
    request->host = head->host ? head->host : "";
    exchange->body.content_type = head->content_type;
    request->http_errors = head->errors && strcasecmp(head->errors, "http") == 0;
    if (head->origin &&
        cors_is_listed(exchange->server->options.settings.cors_origins, head->origin))
        exchange->origin = head->origin;
    return 0;
}

static const char *verb_static(const char *verb)
{
    static const char *const verbs[] = {"GET", "POST", "HEAD"};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verb, verbs[i]) == 0)
            return verbs[i];
    }
    return NULL;
}

static bool page_is_at(const struct server_page *page, const char *path)
{
    size_t length = strlen(page->path);
    if (page->path[length - 1] == '*')
        return strncmp(page->path, path, length - 1) == 0;
    return strcmp(page->path, path) == 0;
}

static const struct server_page *page_find(const struct server *server, const char *path)
{
    for (const struct server_page *page = server->pages; page; page = page->next) {
        if (page_is_at(page, path))
            return page;
    }
    return NULL;
}

// Finds the handler: a method, a page, or an error reply. Cuts the query off the target.
static void exchange_route(struct exchange *exchange)
{
    char *path = exchange->head.target;
    exchange->query = strchr(path, '?');
    if (exchange->query)
        *exchange->query++ = '\0';
    const char *verb = verb_static(exchange->head.verb);

    bool is_call = strncmp(path, "/api/", 5) == 0;
    exchange->page = is_call ? NULL : page_find(exchange->server, path);
    const char *method = is_call ? path + 4 + strspn(path + 4, "/") : "";
    exchange->request.method = exchange_name_is_plain(method, METHOD_LENGTH_MAX) ? method : "";
    if (!exchange->page && !is_call) {
        exchange_plain_error(exchange, 404, "not_found", NULL);
    } else if (exchange->origin && strcmp(exchange->head.verb, "OPTIONS") == 0) {
        exchange->is_preflight = true;
        exchange->request.status = 204;
        exchange->request.replied = true;
    } else if (!verb || (!is_call && strcmp(verb, "POST") == 0)) {
        exchange->allow = is_call ? "GET, POST, HEAD" : "GET, HEAD";
        exchange_plain_error(exchange, 405, error_code(-ERROR_METHOD_NOT_ALLOWED), NULL);
    } else if (is_call) {
        exchange->is_call = true;
        exchange->request.verb = verb;
    }
}

enum MHD_Result exchange_refuse(struct exchange *exchange, const char *reason)
{
    metric_add(METRIC_HTTP_BAD_REQUESTS, 1);
    exchange_plain_error(exchange, 400, "bad_request", reason);
    return exchange_queue(exchange);
}

static enum MHD_Result exchange_too_large(struct exchange *exchange)
{
    metric_add(METRIC_HTTP_BODY_TOO_LARGE, 1);
    if (exchange->is_call)
        request_reply_error(&exchange->request, -ERROR_REQUEST_TOO_LARGE);
    else
        exchange_plain_error(exchange, 413, error_code(-ERROR_REQUEST_TOO_LARGE), NULL);
    exchange_last_word(exchange);
    return MHD_YES;
}

// Reads the announced length of the body. -ERROR_REQUEST_TOO_LARGE if it exceeds the limit.
static int exchange_read_length(struct exchange *exchange)
{
    const char *digits = exchange->head.content_length;
    int64_t length = 0;
    exchange->is_chunked = exchange->head.transfer_encoding != NULL;
    for (; digits && *digits != '\0'; digits++) {
        length = length * 10 + (*digits - '0');
        if (length > exchange->server->options.settings.body_max_bytes)
            return -ERROR_REQUEST_TOO_LARGE;
    }
    exchange->request.body_bytes = length;
    return 0;
}

static enum MHD_Result exchange_refuse_body(struct exchange *exchange, int r)
{
    struct request *request = &exchange->request;
    if (r == -ERROR_REQUEST_TOO_LARGE && request->arguments.error_text[0] == '\0')
        return exchange_too_large(exchange);
    exchange->state = EXCHANGE_ANSWERING;
    if (!request->replied && r == -ERROR_RATELIMITED)
        request_reply_ratelimited(request, BODY_RETRY_S);
    else if (!request->replied)
        request_reply_unread(request, r);
    exchange_last_word(exchange);
    return MHD_YES;
}

static enum MHD_Result exchange_let_in(struct exchange *exchange)
{
    exchange->state = EXCHANGE_BODY;
    connection_move(exchange->connection, CONNECTION_BODY);
    return MHD_YES;
}

static enum MHD_Result exchange_admit(struct exchange *exchange)
{
    int r = exchange_ask(exchange);
    if (r < 0)
        return exchange_refuse_body(exchange, r);
    if (exchange->state != EXCHANGE_ASKED)
        return exchange_let_in(exchange);
    connection_move(exchange->connection, CONNECTION_WORK);
    exchange->ops->suspend(exchange);
    return MHD_YES;
}

enum MHD_Result exchange_admit_end(struct exchange *exchange)
{
    int r = exchange_ask_end(exchange);
    return r < 0 ? exchange_refuse_body(exchange, r) : exchange_let_in(exchange);
}

enum MHD_Result exchange_begin(struct exchange *exchange)
{
    exchange_route(exchange);
    if (exchange_read_length(exchange) < 0)
        return exchange_too_large(exchange);
    return exchange_admit(exchange);
}

enum MHD_Result exchange_queue(struct exchange *exchange)
{
    return exchange->request.replied ? exchange->ops->reply(exchange) : MHD_NO;
}

static void exchange_call(struct exchange *exchange)
{
    struct server *server = exchange->server;
    struct request *request = &exchange->request;
    exchange->started = true;
    server->calls_count++;
    list_append(&server->calls, &exchange->link);
    int r = body_find_token(&exchange->body, request, exchange->query);
    if (r < 0)
        request_reply_unread(request, r);
    else
        server->options.on_call(server->options.arg, request);
}

enum MHD_Result exchange_answer(struct exchange *exchange)
{
    exchange->state = EXCHANGE_ANSWERING;
    connection_move(exchange->connection, CONNECTION_WORK);
    if (exchange->page && exchange->request.status == 0)
        exchange_fill_page(exchange);
    else if (exchange->is_call)
        exchange_call(exchange);
    if (!exchange->is_call || exchange->request.replied)
        return exchange_queue(exchange);
    exchange->state = EXCHANGE_SUSPENDED;
    exchange->ops->suspend(exchange);
    return MHD_YES;
}

enum MHD_Result exchange_take(struct exchange *exchange, const char *data, size_t *size)
{
    int r = exchange_body_add(exchange, data, *size);
    if (r < 0)
        return exchange_refuse_body(exchange, r);
    *size = 0;
    return MHD_YES;
}
