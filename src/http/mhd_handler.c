// SPDX-License-Identifier: Apache-2.0
// libmicrohttpd's callbacks: advance requests as it reads them, and give it the replies. Requests
// for long-lived connections and those with chunked bodies are taken away from it.
#include "mhd_handler.h"

#include "base/check.h"
#include "daemon.h"
#include "exchange_chunked.h"
#include "exchange_gzip.h"
#include "exchange_load.h"
#include "exchange_reply.h"
#include "exchange_steps.h"
#include "http_connection.h"
#include "long_reply.h"

#include "http/path.h"

#include <string.h>

// A response that owns the text of `reply`.
static struct MHD_Response *response_new(struct server *server, struct buffer *reply)
{
    size_t length = reply->length;
    struct long_reply *long_reply = long_reply_take(server, reply);
    struct MHD_Response *response =
        long_reply ? MHD_create_response_from_callback(length, LONG_REPLY_PIECE_BYTES,
                                                       long_reply_read, long_reply, long_reply_free)
                   : MHD_create_response_from_buffer(length, reply->data, MHD_RESPMEM_MUST_FREE);
    if (response)
        reply->data = NULL;
    else
        long_reply_free(long_reply);
    return response;
}

static enum MHD_Result handler_reply(struct exchange *exchange)
{
    struct request *request = &exchange->request;
    struct reply_header headers[REPLY_HEADERS_MAX];
    int count = exchange_headers(exchange, headers);
    struct MHD_Response *response = response_new(exchange->server, &request->reply);
    if (!response)
        return MHD_NO;
    for (int i = 0; i < count; i++)
        MHD_add_response_header(response, headers[i].name, headers[i].value);
    exchange->state = EXCHANGE_ANSWERED;
    connection_move(exchange->connection, CONNECTION_REPLY);
    enum MHD_Result queued = mhd_reply_queue(exchange->mhd, (unsigned)request->status, response);
    MHD_destroy_response(response);
    return queued;
}

static void handler_suspend(const struct exchange *exchange)
{
    MHD_suspend_connection(exchange->mhd);
}

static void handler_resume(struct exchange *exchange)
{
    mhd_resume(exchange->mhd);
    daemon_run_soon(exchange->server);
}

static const struct exchange_ops mhd_ops = {
    .suspend = handler_suspend,
    .resume = handler_resume,
    .reply = handler_reply,
    .send = exchange_send,
    .load = exchange_load,
};

// Checks the received headers of a later request of a connection, which the acceptor has not seen.
// Returns the reason to reject them, or NULL. Malformed request lines are left to head_parse().
static const char *headers_scan(const struct http_connection *connection, const char *target)
{
    size_t length;
    size_t fields_length;
    const char *fields = mhd_fields_peek(connection->memory, target, &length);
    return fields ? head_scan_fields(fields, length, &fields_length) : NULL;
}

void *mhd_handler_line(void *arg, const char *target, struct MHD_Connection *mhd)
{
    struct http_connection *connection = connection_of(mhd);
    struct exchange *exchange = exchange_new(connection, &mhd_ops);
    (void)arg;
    if (!exchange)
        return NULL;
    exchange->target = arena_copy(&exchange->request.arena, target, strlen(target));
    if (connection->state == CONNECTION_IDLE)
        connection_move(connection, CONNECTION_HEADERS);
    if (!connection->memory) {
        connection->memory = target;
        return exchange;
    }
    const char *reason = headers_scan(connection, target);
    if (reason)
        exchange_refuse_early(exchange, 400, reason);
    return exchange;
}

// A proxy may send an upgrade over a connection that libmicrohttpd already serves.
static void hand_over(struct exchange *exchange)
{
    const struct server_options *options = &exchange->server->options;
    int fd;
    if (exchange_detach(exchange, &fd) >= 0)
        options->on_takeover(options->arg, fd, &exchange->head);
}

// Whether libmicrohttpd must not read this request. *ret_result is then the result for it.
static bool is_taken_away(struct exchange *exchange, enum MHD_Result *ret_result)
{
    const char *target = exchange->head.target;
    *ret_result = MHD_YES;
    if (exchange->server->options.on_takeover && path_kind_of(target, strlen(target)) != PATH_OTHER)
        hand_over(exchange);
    else if (exchange->head.transfer_encoding)
        *ret_result = exchange_take_over(exchange);
    else
        return false;
    return true;
}

// Parses the head that libmicrohttpd has read. Returns NULL if it is acceptable, else the reason to
// reject it.
static const char *handler_parse(struct exchange *exchange)
{
    const char *reason = head_parse(exchange->head_text, exchange->head_length, &exchange->head);
    if (!reason && exchange->head.fields != mhd_fields_count(exchange->mhd))
        reason = "a malformed header line";
    return reason;
}

static enum MHD_Result handler_begin(struct exchange *exchange, const char *verb)
{
    enum MHD_Result result;
    if (exchange->target)
        exchange->head_text = mhd_head_copy(exchange->mhd, verb, exchange->target,
                                            &exchange->request.arena, &exchange->head_length);
    if (!exchange->head_text)
        return MHD_NO;
    const char *reason = handler_parse(exchange);
    if (exchange_store_head(exchange) < 0)
        return MHD_NO;
    if (reason)
        return exchange_refuse(exchange, reason);
    return is_taken_away(exchange, &result) ? result : exchange_begin(exchange);
}

// Answers as the acceptor answers a connection's first head.
void mhd_handler_refuse(struct MHD_Connection *mhd, unsigned status)
{
    struct http_connection *connection = connection_of(mhd);
    switch (status) {
    case MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE:
        exchange_refuse_head(connection, (int)status, "the headers are too long");
        break;
    case MHD_HTTP_URI_TOO_LONG:
        exchange_refuse_head(connection, (int)status, "the request line is too long");
        break;
    case MHD_HTTP_HTTP_VERSION_NOT_SUPPORTED:
        exchange_refuse_head(connection, MHD_HTTP_BAD_REQUEST, "an unknown version");
        break;
    default:
        exchange_refuse_head(connection, MHD_HTTP_BAD_REQUEST, "a malformed request");
        break;
    }
}

enum MHD_Result mhd_handler_step(void *arg, struct MHD_Connection *mhd, const char *path,
                                 const char *verb, const char *version, const char *data,
                                 size_t *size, void **context)
{
    (void)arg;
    (void)path;
    (void)version;
    if (!*context)
        return MHD_NO;
    struct exchange *exchange = CAST(exchange, *context);
    switch (exchange->state) {
    case EXCHANGE_LINE:
        return handler_begin(exchange, verb);
    case EXCHANGE_ASKED:
        mhd_resumed(mhd);
        return exchange_admit_end(exchange);
    case EXCHANGE_BODY:
        return *size == 0 ? exchange_answer(exchange) : exchange_take(exchange, data, size);
    case EXCHANGE_SUSPENDED:
        mhd_resumed(mhd);
        return exchange_queue(exchange);
    default:
        return MHD_NO;
    }
}

void mhd_handler_end(void *arg, struct MHD_Connection *mhd, void **context,
                     enum MHD_RequestTerminationCode code)
{
    (void)arg;
    (void)mhd;
    (void)code;
    if (!*context)
        return;
    struct exchange *exchange = CAST(exchange, *context);
    *context = NULL;
    if (exchange->connection->state != CONNECTION_CLOSING)
        connection_move(exchange->connection, CONNECTION_IDLE);
    exchange_leave(exchange);
}
