// SPDX-License-Identifier: Apache-2.0
// Decides whether to admit a body, and whom to charge for it. Runs once the head is complete, so
// that refused bodies are never read. Small bodies are always admitted. A large body without a
// token in its head must not exceed a lower limit, and shares a quota with all other
// unauthenticated requests.
#include "exchange_admission.h"

#include "base/check.h"
#include "base/error.h"
#include "base/metrics.h"

static bool is_strangers(const struct exchange *exchange)
{
    return exchange->request.token[0] == '\0';
}

static int stranger_fail(struct exchange *exchange)
{
    metric_add(METRIC_BODIES_STRANGER_LARGE, 1);
    return arguments_fail(&exchange->request.arguments, -ERROR_REQUEST_TOO_LARGE,
                          "a body of more than %d bytes needs its token in the head",
                          (int)exchange->server->options.settings.stranger_body_max_bytes);
}

// Admits the announced bytes, within the limits.
static int announced_hold(struct exchange *exchange)
{
    struct request *request = &exchange->request;
    if (request->body_bytes <= SERVER_BODY_SMALL_BYTES)
        return 0;
    if (is_strangers(exchange) &&
        request->body_bytes > exchange->server->options.settings.stranger_body_max_bytes)
        return stranger_fail(exchange);
    return request_hold(request, request->body_bytes);
}

static void call_leaves(struct exchange *exchange)
{
    exchange->started = false;
    ASSERT(exchange->server->calls_count > 0);
    exchange->server->calls_count--;
    list_remove(&exchange->link);
}

// The positive answer of on_admit. Resumes the exchange, unless on_admit is still being called or
// the connection is gone.
static void exchange_admitted(struct request *request)
{
    struct exchange *exchange = CAST(exchange, request);
    exchange->is_admitted = true;
    exchange_ready(exchange);
}

static bool is_chunked(const struct exchange *exchange)
{
    return exchange->head.transfer_encoding;
}

static bool must_ask(const struct exchange *exchange)
{
    const struct server *server = exchange->server;
    bool is_long = is_chunked(exchange) || exchange->request.body_bytes > SERVER_BODY_SMALL_BYTES;
    return exchange->is_call && is_long && !is_strangers(exchange) && server->options.on_admit;
}

int exchange_ask(struct exchange *exchange)
{
    struct server *server = exchange->server;
    exchange->state = EXCHANGE_BODY;
    if (!must_ask(exchange))
        return exchange->is_call ? announced_hold(exchange) : 0;
    exchange->started = true;
    server->calls_count++;
    list_append(&server->calls, &exchange->link);
    exchange->state = EXCHANGE_ANSWERING;
    exchange->request.admit = exchange_admitted;
    server->options.on_admit(server->options.arg, &exchange->request);
    if (exchange->is_admitted || exchange->request.replied)
        return exchange_ask_end(exchange);
    exchange->state = EXCHANGE_ASKED;
    return 0;
}

int exchange_ask_end(struct exchange *exchange)
{
    if (exchange->request.replied)
        return -ERROR_INVALID_AUTH;
    call_leaves(exchange);
    exchange->state = EXCHANGE_BODY;
    return announced_hold(exchange);
}

// Counts a piece of a body whose length was not announced.
static int piece_hold(struct exchange *exchange, size_t size)
{
    struct request *request = &exchange->request;
    const struct server_settings *settings = &exchange->server->options.settings;
    request->body_bytes += (int64_t)size;
    // The lower limit first: a large piece may exceed both.
    if (exchange->is_call && is_strangers(exchange) &&
        request->body_bytes > settings->stranger_body_max_bytes)
        return stranger_fail(exchange);
    if (request->body_bytes > settings->body_max_bytes)
        return -ERROR_REQUEST_TOO_LARGE;
    if (!exchange->is_call || request->body_bytes <= SERVER_BODY_SMALL_BYTES)
        return 0;
    return request_hold(request, request->body_bytes - request->held_bytes);
}

int exchange_body_add(struct exchange *exchange, const char *data, size_t size)
{
    int r = is_chunked(exchange) ? piece_hold(exchange, size) : 0;
    if (r >= 0 && exchange->is_call) // otherwise nobody reads it
        buffer_append(&exchange->body.bytes, data, size);
    return r;
}
