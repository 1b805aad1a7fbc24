// SPDX-License-Identifier: Apache-2.0
// Writes replies to the connection, a piece of a long one at a time.
#include "exchange_reply.h"

#include "exchange_transfer.h"

#include "base/error.h"
#include "base/metrics.h"
#include "http/cors.h"

#include <errno.h>
#include <microhttpd.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { PIECE_BYTES = 1 << 18 }; // sent in a turn

// Whether the reply is a file, or 304 for it, and no error.
static bool is_file(const struct exchange *exchange)
{
    return exchange->page && !exchange->page->fn && exchange->request.error[0] == '\0';
}

// Errors are kept by nobody.
static const char *cache_of(const struct exchange *exchange)
{
    return exchange->page && exchange->request.status == 200 ? exchange->page->cache : "no-store";
}

static int file_headers(const struct server_page *page, struct reply_header *headers, int count)
{
    headers[count++] = (struct reply_header){"Cache-Control", "no-cache"};
    headers[count++] = (struct reply_header){"ETag", page->etag};
    if (page->file.policy)
        headers[count++] = (struct reply_header){"Content-Security-Policy", page->file.policy};
    return count;
}

// Nothing in a file can act on behalf of this service, should a browser show it.
static int stored_headers(const struct exchange *exchange, struct reply_header *headers, int count)
{
    headers[count++] =
        (struct reply_header){"Content-Disposition", exchange->request.file.disposition};
    headers[count++] =
        (struct reply_header){"Content-Security-Policy", "sandbox; default-src 'none'"};
    headers[count++] = (struct reply_header){"Accept-Ranges", "bytes"};
    if (exchange->content_range[0] != '\0')
        headers[count++] = (struct reply_header){"Content-Range", exchange->content_range};
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

// For calls with a token: some clients crash without them.
static int scope_headers(const struct request *request, struct reply_header *headers, int count)
{
    headers[count++] = (struct reply_header){"X-OAuth-Scopes", request->granted};
    headers[count++] =
        (struct reply_header){"X-Accepted-OAuth-Scopes", request->scope ? request->scope : ""};
    return count;
}

static bool is_last(const struct exchange *exchange)
{
    const struct http_head *head = &exchange->head;
    if (exchange->is_last || exchange->server->quiescing)
        return true;
    return head_is_1_0(head) ? !head->wants_keep : head->wants_close;
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
        ret_headers[count++] = (struct reply_header){"Cache-Control", cache_of(exchange)};
    ret_headers[count++] = (struct reply_header){"X-Content-Type-Options", "nosniff"};
    if (exchange_has_file(exchange))
        count = stored_headers(exchange, ret_headers, count);
    else if (exchange->is_call && exchange->server->options.settings.gzip_min_bytes > 0)
        ret_headers[count++] = (struct reply_header){"Vary", "Accept-Encoding"};
    if (exchange->is_gzip)
        ret_headers[count++] = (struct reply_header){"Content-Encoding", "gzip"};
    if (exchange->request.status == 401)
        ret_headers[count++] = (struct reply_header){"WWW-Authenticate", "Bearer"};
    if (exchange->request.retry_after[0] != '\0')
        ret_headers[count++] = (struct reply_header){"Retry-After", exchange->request.retry_after};
    if (exchange->request.granted)
        count = scope_headers(&exchange->request, ret_headers, count);
    if (exchange->origin)
        count = cors_headers(exchange, ret_headers, count);
    if (exchange->allow)
        ret_headers[count++] = (struct reply_header){"Allow", exchange->allow};
    if (exchange->is_last)
        ret_headers[count++] = (struct reply_header){"Connection", "close"};
    else if (head_is_1_0(&exchange->head))
        ret_headers[count++] = (struct reply_header){"Connection", "keep-alive"};
    return count;
}

// Prints the date once a second.
static const char *date_line(struct server *server)
{
    time_t now = time(NULL);
    struct tm calendar;
    if (now != server->date_s) {
        gmtime_r(&now, &calendar);
        strftime(server->date, sizeof server->date, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n",
                 &calendar);
        server->date_s = now;
    }
    return server->date;
}

static void header_append(struct buffer *text, const struct reply_header *header)
{
    buffer_append_text(text, header->name);
    buffer_append(text, ": ", 2);
    buffer_append_text(text, header->value);
    buffer_append(text, "\r\n", 2);
}

static int64_t reply_length(const struct exchange *exchange)
{
    return exchange_has_file(exchange) ? exchange->file_end - exchange->file_at
                                       : (int64_t)exchange->request.reply.length;
}

static void head_print(struct exchange *exchange)
{
    const struct request *request = &exchange->request;
    struct buffer *text = &exchange->text;
    struct reply_header headers[REPLY_HEADERS_MAX];
    exchange->is_last = is_last(exchange);
    buffer_append_text(text, "HTTP/1.1 ");
    buffer_append_int(text, request->status);
    buffer_append_byte(text, ' ');
    buffer_append_text(text, MHD_get_reason_phrase_for((unsigned)request->status));
    buffer_append(text, "\r\n", 2);
    buffer_append_text(text, date_line(exchange->server));
    int count = exchange_headers(exchange, headers);
    for (int i = 0; i < count; i++)
        header_append(text, &headers[i]);
    if (request->status != 204) { // has no body, nor a length
        buffer_append_text(text, "Content-Length: ");
        buffer_append_int(text, reply_length(exchange));
        buffer_append(text, "\r\n", 2);
    }
    buffer_append(text, "\r\n", 2);
}

// The number of bytes that follow the head: none of a reply to HEAD.
static size_t body_bytes(const struct exchange *exchange)
{
    const char *verb = exchange->head.verb;
    return verb && strcmp(verb, "HEAD") == 0 ? 0 : exchange->request.reply.length;
}

// Sends a piece of the rest, or what the socket accepts of it. As send(2).
static ssize_t piece_send(const struct exchange *exchange, int fd, size_t total)
{
    const struct buffer *head = &exchange->text;
    char *body = exchange->request.reply.data; // NULL if there is none
    size_t head_sent = exchange->sent < head->length ? exchange->sent : head->length;
    size_t body_sent = exchange->sent - head_sent;
    size_t left = total - head->length - body_sent;
    struct iovec rest[] = {
        {head->data + head_sent, head->length - head_sent},
        {body ? body + body_sent : NULL, left < PIECE_BYTES ? left : PIECE_BYTES},
    };
    struct msghdr message = {.msg_iov = rest, .msg_iovlen = 2};
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

int exchange_write(struct exchange *exchange, int fd)
{
    if (exchange->text.length == 0)
        head_print(exchange);
    if (buffer_failed(&exchange->text))
        return -ERROR_MEMORY;
    size_t total = exchange->text.length + body_bytes(exchange);
    ssize_t count = piece_send(exchange, fd, total);
    if (count < 0 && errno != EAGAIN && errno != EINTR)
        return -ERROR_UNAVAILABLE;
    exchange->sent += count > 0 ? (size_t)count : 0;
    return exchange->sent == total;
}

int exchange_write_file(struct exchange *exchange)
{
    exchange_file_prepare(exchange);
    head_print(exchange);
    return buffer_failed(&exchange->text) ? -ERROR_MEMORY : exchange_send_file(exchange);
}

void exchange_plain_error(struct exchange *exchange, int status, const char *code,
                          const char *message)
{
    request_write_plain_error(&exchange->request, status, code, message);
    exchange->request.replied = true;
}

// Enough for the rest of this body, and for another one of the maximum size.
int64_t exchange_linger_bytes(const struct exchange *exchange)
{
    return 2 * exchange->server->options.settings.body_max_bytes -
           (int64_t)exchange->body.bytes.length;
}

void exchange_refuse(struct exchange *exchange, int status, const char *reason)
{
    metric_add(METRIC_HTTP_BAD_REQUESTS, 1);
    exchange_plain_error(exchange, status, "bad_request", reason);
    exchange->is_last = true;
    exchange->state = EXCHANGE_REPLY;
}
