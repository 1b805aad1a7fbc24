// SPDX-License-Identifier: Apache-2.0
// Event streams (GET /events): their requests, replies and connection_ops.
#include "sse.h"

#include "../connection/connection.h"
#include "../connection/outlet.h"
#include "../connection/packet.h"
#include "../core.h"
#include "../gateway_session.h"
#include "../login.h"
#include "../resume/backlog.h"
#include "../watermark.h"
#include "sse_head.h"

#include "base/check.h"
#include "base/error.h"
#include "base/metrics.h"
#include "http/cors.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CORS_ANSWER "Access-Control-Expose-Headers: " CORS_EXPOSED "\r\n"
#define CORS_PREFLIGHT                                                                             \
    "Access-Control-Allow-Methods: GET\r\n"                                                        \
    "Access-Control-Allow-Headers: authorization, last-event-id, cache-control\r\n"                \
    "Access-Control-Max-Age: " CORS_MAX_AGE "\r\n"

enum { REPLY_SIZE = 1024 };

static const char hello[] = "{\"type\":\"hello\"}";
static const char gap[] = "{\"type\":\"gap\",\"channel\":null}";

static const struct connection_ops sse_ops;

struct sse {
    uint32_t tag;
    struct backlog backlog;
    const char *cors; // CORS headers for the requesting page: static text or `cors_text`
    char cors_text[512];
};

static struct sse *sse_of(const struct connection *c)
{
    ASSERT(c->ops == &sse_ops);
    return CAST(sse, c->kind);
}

static void cors_write(struct connection *c, const struct sse_head *head)
{
    struct sse *sse = sse_of(c);
    sse->cors = "";
    if (!head->origin[0] || !cors_is_listed(c->gateway->options.cors_origins, head->origin))
        return;
    snprintf(sse->cors_text, sizeof sse->cors_text,
             "Access-Control-Allow-Origin: %s\r\nVary: Origin\r\n", head->origin);
    sse->cors = sse->cors_text;
}

static const struct {
    int status;
    const char *line;
    const char *headers;
    const char *code;
} refusals[] = {
    {400, "400 Bad Request", "", "invalid_arguments"},
    {401, "401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "invalid_auth"},
    {403, "403 Forbidden", "", "missing_scope"},
    {405, "405 Method Not Allowed", "Allow: GET, OPTIONS\r\n", "method_not_allowed"},
    {503, "503 Service Unavailable", "Retry-After: 1\r\n", "service_unavailable"},
};

static void sse_refuse(struct connection *c, int status, const char *unused)
{
    (void)unused;
    char reply[REPLY_SIZE], body[128];
    size_t i = 0;
    while (refusals[i].status != status)
        i++;
    int length = snprintf(body, sizeof body, "{\"ok\":false,\"error\":\"%s\"}", refusals[i].code);
    snprintf(reply, sizeof reply,
             "HTTP/1.1 %s\r\n%s%sContent-Type: application/json\r\nCache-Control: no-store"
             "\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
             refusals[i].line, refusals[i].headers, sse_of(c)->cors, length, body);
    connection_refuse(c, reply);
}

static void preflight_answer(struct connection *c)
{
    char reply[REPLY_SIZE];
    snprintf(reply, sizeof reply, "HTTP/1.1 204 No Content\r\n%s%sConnection: close\r\n\r\n",
             sse_of(c)->cors, sse_of(c)->cors[0] ? CORS_PREFLIGHT : "");
    connection_refuse(c, reply);
}

void sse_accept(struct connection *c, const struct http_head *request)
{
    struct sse_head head;
    int status = sse_head_read(request, &head);
    struct sse *sse = TAGGED_NEW(sse);
    if (!sse) {
        connection_abort(c);
        return;
    }
    c->kind = sse;
    c->ops = &sse_ops;
    cors_write(c, &head);
    c->native = c->is_resumable = true;
    backlog_init(&sse->backlog, c, &head.place);
    if (status == 0 && head.is_preflight) {
        preflight_answer(c);
        return;
    }
    if (status == 0 && !head.credential[0])
        status = 401;
    else if (status == 0 && head.since_is_bad)
        status = 400;
    else if (status == 0 && c->gateway->draining)
        status = 503;
    if (status != 0) {
        sse_refuse(c, status, "");
        return;
    }
    if (head.is_ticket)
        login_ticket(c, head.credential, "");
    else
        login_token(c, head.credential);
}

static int sse_admit(struct connection *c, int r, bool known)
{
    if (r < 0)
        return 503;
    if (!known)
        return 401;
    bool may = c->actor.type != 'a' && actor_has_scope(&c->actor, "rtm:stream");
    return may ? 0 : 403;
}

// A stream has no input, so a peer that vanished is detected by missing TCP acknowledgements.
static void peer_watch(const struct connection *c)
{
    const struct gateway_options *options = &c->gateway->options;
    unsigned int timeout_ms =
        (unsigned int)(options->settings.ping_interval_ms + options->settings.pong_timeout_ms);
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}

// The client's position is too old: it must read everything by unread.sync.
static void sse_gap_send(struct connection *c)
{
    connection_send_text(c, "gap", gap, sizeof gap - 1);
    metric_add(METRIC_GAPS_TOLD, 1);
}

static void sse_open(struct connection *c, const struct result *channels, const char *unused)
{
    char reply[REPLY_SIZE];
    struct sse *sse = sse_of(c);
    (void)unused;
    if (backlog_is_of_another(&sse->backlog)) {
        sse_refuse(c, 400, "");
        return;
    }
    if (backlog_begin(&sse->backlog, channels) < 0) {
        sse_refuse(c, 503, "");
        return;
    }
    snprintf(reply, sizeof reply,
             "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store"
             "\r\nX-Accel-Buffering: no\r\n%s%sConnection: close\r\n\r\nretry: 3000\n\n",
             sse->cors, sse->cors[0] ? CORS_ANSWER : "");
    if (outlet_raw(&c->outlet, reply, strlen(reply)) < 0) {
        connection_abort(c);
        return;
    }
    peer_watch(c);
    c->ignores_input = true;
    connection_begin(c);
    if (sse->backlog.is_too_old)
        sse_gap_send(c);
    connection_send_text(c, "hello", hello, sizeof hello - 1);
    watermark_request(c->gateway);
    backlog_advance(&sse->backlog);
}

static int sse_input(struct connection *c, const char *data, size_t length)
{
    (void)c, (void)data, (void)length; // input after the request is ignored
    return -ERROR_INVALID_ARGUMENTS;
}

static void sse_ping(struct connection *c, int64_t now_ms)
{
    static const char comment[] = ":\n\n";
    (void)now_ms;
    if (outlet_raw(&c->outlet, comment, sizeof comment - 1) < 0) {
        connection_slow(c);
        return;
    }
    connection_mark_dirty(c);
}

static void sse_send(struct connection *c, struct packets *packets)
{
    connection_push(c, packets_event(packets, backlog_position(&sse_of(c)->backlog)));
}

static void sse_deliver(struct connection *c, const struct feed *feed, const struct feed_item *item,
                        struct packets *packets)
{
    (void)feed, (void)item;
    connection_send(c, packets);
}

static void sse_settle(struct connection *c)
{
    backlog_settle(&sse_of(c)->backlog);
}

static bool sse_joins(struct connection *c, const struct feed *feed)
{
    return backlog_joined(&sse_of(c)->backlog, feed);
}

static bool sse_awaits(struct connection *c, const struct event *event)
{
    return backlog_awaits(&sse_of(c)->backlog, event);
}

static void sse_announce(struct connection *c, enum announcement what)
{
    static const char goodbye[] = "{\"type\":\"goodbye\"}";
    if (what == ANNOUNCE_DRAIN)
        connection_send_text(c, "goodbye", goodbye, sizeof goodbye - 1);
}

// Sends a comment after a partly sent packet, for human readers.
static void sse_end(struct connection *c)
{
    char text[160];
    int length = snprintf(text, sizeof text, ": closed: %s\n\n", c->close_reason);
    outlet_drop_backlog(&c->outlet);
    if (outlet_raw(&c->outlet, text, (size_t)length) < 0) {
        connection_abort(c);
        return;
    }
    connection_end(c);
}

static void sse_leave(struct connection *c)
{
    backlog_end(&sse_of(c)->backlog);
    session_leave(c);
}

static const struct statement *sse_channels(struct connection *c, struct params *params)
{
    return backlog_channels(&sse_of(c)->backlog, params);
}

static void sse_flushed(struct connection *c)
{
    backlog_advance(&sse_of(c)->backlog);
}

static void sse_free(void *kind)
{
    struct sse *sse = CAST(sse, kind);
    TAGGED_FREE(sse);
}

static const struct connection_ops sse_ops = {
    .open_metric = METRIC_STREAMS_OPEN,
    .channels = sse_channels,
    .admit = sse_admit,
    .refuse = sse_refuse,
    .open = sse_open,
    .input = sse_input,
    .flushed = sse_flushed,
    .ping = sse_ping,
    .send = sse_send,
    .deliver = sse_deliver,
    .gap = connection_gap,
    .awaits = sse_awaits,
    .joins = sse_joins,
    .settle = sse_settle,
    .announce = sse_announce,
    .end = sse_end,
    .leave = sse_leave,
    .free = sse_free,
};
