// SPDX-License-Identifier: Apache-2.0
// The headers and text of replies, and replies that bypass libmicrohttpd.
#include "exchange_reply.h"

#include "http_connection.h"
#include "lingering_close.h"

#include "base/error.h"
#include "base/metrics.h"
#include "http/cors.h"

#include <string.h>
#include <time.h>

enum { HEAD_MAX_BYTES = 32768 };

// Whether the reply is a file, or 304 for it, and no error.
static bool is_file(const struct exchange *exchange)
{
    return exchange->page && !exchange->page->fn && exchange->request.error[0] == '\0';
}

static int file_headers(const struct server_page *page, struct reply_header *headers, int count)
{
    headers[count++] = (struct reply_header){"Cache-Control", "no-cache"};
    headers[count++] = (struct reply_header){"ETag", page->etag};
    if (page->file.policy)
        headers[count++] = (struct reply_header){"Content-Security-Policy", page->file.policy};
    return count;
}

// Lets the calling page read the reply, or lets its browser send the call after a preflight.
static int cors_headers(const struct exchange *exchange, struct reply_header *headers, int count)
{
    headers[count++] = (struct reply_header){"Access-Control-Allow-Origin", exchange->origin};
    headers[count++] = (struct reply_header){"Vary", "Origin"};
    headers[count++] = (struct reply_header){"Access-Control-Expose-Headers", CORS_EXPOSED};
    if (!exchange->is_preflight)
        return count;
    headers[count++] = (struct reply_header){"Access-Control-Allow-Methods", "GET, POST, HEAD"};
    headers[count++] =
        (struct reply_header){"Access-Control-Allow-Headers",
                              "authorization, content-type, idempotency-key, traceparent, "
                              "user-agent, x-request-id, x-tidings-errors"};
    headers[count++] = (struct reply_header){"Access-Control-Max-Age", CORS_MAX_AGE};
    return count;
}

// For tokens with scopes.
static int scope_headers(const struct request *request, struct reply_header *headers, int count)
{
    headers[count++] = (struct reply_header){"X-OAuth-Scopes", request->actor.scopes};
    if (request->scope)
        headers[count++] = (struct reply_header){"X-Accepted-OAuth-Scopes", request->scope};
    return count;
}

// Whatever follows a chunked body on its connection is not parsed as a request.
static bool is_last(const struct exchange *exchange)
{
    return exchange->server->quiescing || exchange->is_chunked;
}

static const char *reply_type(const struct exchange *exchange)
{
    const struct request *request = &exchange->request;
    bool is_problem = request->http_errors && request->error[0] != '\0';
    return is_problem ? "application/problem+json" : exchange->content_type;
}

// The headers of all replies, and those needed for this one.
int exchange_headers(const struct exchange *exchange, struct reply_header *ret_headers)
{
    int count = 0;
    ret_headers[count++] = (struct reply_header){"Content-Type", reply_type(exchange)};
    ret_headers[count++] = (struct reply_header){"X-Request-Id", exchange->request.id};
    if (is_file(exchange))
        count = file_headers(exchange->page, ret_headers, count);
    else
        ret_headers[count++] = (struct reply_header){"Cache-Control", "no-store"};
    ret_headers[count++] = (struct reply_header){"X-Content-Type-Options", "nosniff"};
    if (exchange->is_call && exchange->server->options.settings.gzip_min_bytes > 0)
        ret_headers[count++] = (struct reply_header){"Vary", "Accept-Encoding"};
    if (exchange->is_gzip)
        ret_headers[count++] = (struct reply_header){"Content-Encoding", "gzip"};
    if (exchange->request.status == 401)
        ret_headers[count++] = (struct reply_header){"WWW-Authenticate", "Bearer"};
    if (exchange->request.retry_after[0] != '\0')
        ret_headers[count++] = (struct reply_header){"Retry-After", exchange->request.retry_after};
    if (exchange->request.actor.scopes[0] != '\0')
        count = scope_headers(&exchange->request, ret_headers, count);
    if (exchange->origin)
        count = cors_headers(exchange, ret_headers, count);
    if (exchange->allow)
        ret_headers[count++] = (struct reply_header){"Allow", exchange->allow};
    if (is_last(exchange))
        ret_headers[count++] = (struct reply_header){"Connection", "close"};
    return count;
}

void exchange_plain_error(struct exchange *exchange, int status, const char *code,
                          const char *message)
{
    request_write_plain_error(&exchange->request, status, code, message);
    exchange->request.replied = true;
}

static int fill_file(struct exchange *exchange)
{
    const struct server_page *page = exchange->page;
    const char *known = exchange->head.if_none_match;
    exchange->content_type = page->file.type;
    if (known && strstr(known, page->etag))
        return 304;
    buffer_append(&exchange->request.reply, page->file.data, page->file.length);
    return 200;
}

void exchange_fill_page(struct exchange *exchange)
{
    const struct server_page *page = exchange->page;
    struct request *request = &exchange->request;
    request->status = page->fn ? page->fn(page->arg, &request->reply, &exchange->content_type)
                               : fill_file(exchange);
    if (buffer_failed(&request->reply))
        exchange_plain_error(exchange, 500, error_code(-ERROR_INTERNAL), NULL);
    request->replied = true;
}

static void date_append(struct buffer *text)
{
    time_t now = time(NULL);
    struct tm calendar;
    char date[64];
    gmtime_r(&now, &calendar);
    strftime(date, sizeof date, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &calendar);
    buffer_append_text(text, date);
}

size_t exchange_reply_bytes(const struct exchange *exchange)
{
    const char *verb = exchange->head.verb;
    return verb && strcmp(verb, "HEAD") == 0 ? 0 : exchange->request.reply.length;
}

void exchange_print_head(const struct exchange *exchange, struct buffer *text)
{
    const struct request *request = &exchange->request;
    struct reply_header headers[REPLY_HEADERS_MAX];
    buffer_append_format(text, "HTTP/1.1 %d %s\r\n", request->status,
                         MHD_get_reason_phrase_for((unsigned)request->status));
    date_append(text);
    int count = exchange_headers(exchange, headers);
    for (int i = 0; i < count; i++)
        buffer_append_format(text, "%s: %s\r\n", headers[i].name, headers[i].value);
    if (!is_last(exchange))
        buffer_append_text(text, "Connection: close\r\n");
    buffer_append_format(text, "Content-Length: %zu\r\n\r\n", request->reply.length);
}

int exchange_detach(struct exchange *exchange, int *ret_fd)
{
    struct http_connection *connection = exchange->connection;
    exchange->state = EXCHANGE_DETACHED;
    if (connection->mhd)
        return connection_detach(connection, ret_fd);
    *ret_fd = connection_take_fd(connection);
    exchange->connection = NULL;
    return 0;
}

// Enough for the rest of this body, and for another one of the maximum size.
int64_t exchange_linger_bytes(const struct exchange *exchange)
{
    return 2 * exchange->server->options.settings.body_max_bytes -
           (int64_t)exchange->body.bytes.length;
}

void exchange_last_word(struct exchange *exchange)
{
    struct server *server = exchange->server;
    CLEANUP(buffer_done) struct buffer text = BUFFER(HEAD_MAX_BYTES);
    exchange_print_head(exchange, &text);
    buffer_append(&text, exchange->request.reply.data, exchange_reply_bytes(exchange));

    int fd;
    int64_t budget = exchange_linger_bytes(exchange);
    if (exchange_detach(exchange, &fd) < 0)
        return;
    lingering_close_start(server, fd, budget, text.data, text.length);
}

void exchange_refuse_early(struct exchange *exchange, int status, const char *reason)
{
    (void)!exchange_name(exchange);
    metric_add(METRIC_HTTP_BAD_REQUESTS, 1);
    exchange_plain_error(exchange, status, "bad_request", reason);
    exchange_last_word(exchange);
}

void exchange_refuse_head(struct http_connection *connection, int status, const char *reason)
{
    static const struct exchange_ops none = {0};
    struct exchange *exchange = exchange_new(connection, &none);
    if (!exchange) {
        connection_free(connection);
        return;
    }
    exchange_refuse_early(exchange, status, reason);
    exchange_free(exchange);
}
