// SPDX-License-Identifier: Apache-2.0
// Event streams (GET /events): the connection's way from its request to its first event.
#include "sse.h"

#include "connection.h"
#include "core.h"
#include "outlet.h"
#include "resume.h"
#include "sse_head.h"
#include "ticket.h"
#include "watermark.h"

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

static void cors_write(struct connection *c, const struct sse_head *head)
{
    struct sse *sse = c->sse;
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

void sse_refuse(struct connection *c, int status)
{
    char reply[REPLY_SIZE], body[128];
    size_t i = 0;
    while (refusals[i].status != status)
        i++;
    int length = snprintf(body, sizeof body, "{\"ok\":false,\"error\":\"%s\"}", refusals[i].code);
    snprintf(reply, sizeof reply,
             "HTTP/1.1 %s\r\n%s%sContent-Type: application/json\r\nCache-Control: no-store"
             "\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
             refusals[i].line, refusals[i].headers, c->sse->cors, length, body);
    connection_refuse(c, reply);
}

static void preflight_answer(struct connection *c)
{
    char reply[REPLY_SIZE];
    snprintf(reply, sizeof reply, "HTTP/1.1 204 No Content\r\n%s%sConnection: close\r\n\r\n",
             c->sse->cors, c->sse->cors[0] ? CORS_PREFLIGHT : "");
    connection_refuse(c, reply);
}

void sse_accept(struct connection *c, size_t head_length)
{
    struct sse_head head;
    int status = sse_head_read(c->input.data, head_length, &head);
    c->sse = calloc(1, sizeof *c->sse);
    if (!c->sse) {
        connection_abort(c);
        return;
    }
    cors_write(c, &head);
    buffer_done(&c->input); // what follows is nothing to us
    c->native = true;
    c->sse->since = head.since;
    c->sse->progress = head.progress;
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
        sse_refuse(c, status);
        return;
    }
    c->state = CONNECTION_TICKET;
    loop_watch_set(c->watch, 0);
    if (head.is_ticket)
        ticket_use(c, head.credential, "");
    else
        ticket_use_token(c, head.credential);
}

int sse_refusal(const struct connection *c, int r, bool known)
{
    if (r < 0)
        return 503;
    if (!known)
        return 401;
    bool may = c->actor.type != 'a' && actor_has_scope(&c->actor, "rtm:stream");
    return may ? 0 : 403;
}

// A peer that is gone without a word is noticed by what it does not acknowledge.
static void peer_watch(const struct connection *c)
{
    const struct gateway_options *options = &c->gateway->options;
    unsigned int timeout_ms = (unsigned int)(options->ping_interval_ms + options->pong_timeout_ms);
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}

void sse_tell_gap(struct connection *c)
{
    connection_send_text(c, gap, sizeof gap - 1);
    metric_add(METRIC_GAPS_TOLD, 1);
}

void sse_open(struct connection *c, const struct store_outcome *outcome)
{
    char reply[REPLY_SIZE];
    struct sse *sse = c->sse;
    if (outcome->r < 0 || c->gateway->draining) {
        sse_refuse(c, 503);
        return;
    }
    bool too_old = resume_is_too_old(c, outcome->result);
    if (too_old)
        sse->since.xid = 0;
    sse->serial = c->gateway->watermark.next_serial;
    if (resume_begin(c, outcome->result) < 0) {
        sse_refuse(c, 503);
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
    metric_add(METRIC_STREAMS_RESUMED, sse->resume != NULL);
    peer_watch(c);
    c->is_deaf = true;
    connection_begin(c);
    if (too_old)
        sse_tell_gap(c);
    connection_send_text(c, hello, sizeof hello - 1);
    watermark_want(c->gateway);
    resume_go_on(c);
}

void sse_beat(struct connection *c)
{
    static const char comment[] = ":\n\n";
    if (outlet_raw(&c->outlet, comment, sizeof comment - 1) < 0) {
        connection_slow(c);
        return;
    }
    connection_mark_dirty(c);
}

void sse_settle(struct connection *c)
{
    const struct watermark *watermark = &c->gateway->watermark;
    if (!c->sse || c->sse->resume || c->state != CONNECTION_OPEN)
        return;
    if ((int32_t)(watermark->serial - c->sse->serial) > 0)
        c->sse->is_settled = true;
}

void sse_free(struct connection *c)
{
    if (!c->sse)
        return;
    resume_free(c);
    free(TAKE(c->sse));
}
