// SPDX-License-Identifier: Apache-2.0
// Handles a client's messages: posts, marks, pings, typing, focus, presence.
#include "inbound.h"

#include "../channel/ephemeral.h"
#include "../channel/feed.h"
#include "../channel/subscribers.h"
#include "../connection/connection.h"
#include "../core.h"
#include "../login.h"
#include "socket.h"

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/metrics.h"
#include "call/internal_request.h"
#include "chat/message.h"
#include "chat/presence.h"
#include "login/jwt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_TO_SIZE = 72, REPLY_MAX = 1 << 20, ACTIVE_INTERVAL_MS = 250 };

// When a native socket is told that its token expires.
enum { EXPIRES_NOTICE_MS = 60 * 1000 };

// Error codes in answers, as Slack's clients know them.
enum { CODE_INVALID = 1, CODE_MESSAGE = 2, CODE_SLOW_DOWN = -1 };

// A method call in progress.
struct method_call {
    uint32_t tag;
    struct list link; // in inbound->calls
    struct gateway *gateway;
    struct inbound *inbound; // NULL once its connection is gone
    char origin[EVENT_ID_SIZE];
    char reply_to[REPLY_TO_SIZE]; // JSON
    int64_t asked_ms;             // of auth_refresh
};

// The message's id as JSON; "": none. False: one that cannot be echoed.
static bool reply_to_read(const json_t *message, char *ret_text)
{
    const json_t *id = json_object_get(message, "id");
    ret_text[0] = '\0';
    if (!id || json_is_null(id))
        return true;
    if (!json_is_integer(id) && !json_is_string(id))
        return false;
    size_t length = json_dumpb(id, ret_text, REPLY_TO_SIZE - 1, JSON_ENCODE_ANY | JSON_COMPACT);
    bool fits = length < REPLY_TO_SIZE;
    ret_text[fits ? length : 0] = '\0';
    return fits;
}

// A message without an id has an answer without `reply_to`: what Slack's oldest clients send.
static void reply_to_write(struct json_writer *w, const char *reply_to)
{
    if (reply_to[0] == '\0')
        return;
    json_key(w, "reply_to");
    json_raw(w, reply_to, strlen(reply_to));
}

static void error_send(struct connection *c, const char *reply_to, int code, const char *text)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(REPLY_MAX);
    struct json_writer w = json_writer_to(&out);
    json_open_object(&w);
    json_key(&w, "ok");
    json_bool(&w, false);
    reply_to_write(&w, reply_to);
    json_key(&w, "error");
    json_open_object(&w);
    json_key_int(&w, "code", code);
    json_key_string(&w, "msg", text);
    json_close_object(&w);
    json_close_object(&w);
    if (!buffer_failed(&out))
        connection_send_text(c, "", out.data, out.length);
}

static void refusal_send(struct connection *c, const char *reply_to, const char *error)
{
    if (strcmp(error, error_code(ERROR_NO_TEXT)) == 0)
        error_send(c, reply_to, CODE_MESSAGE, "message text is missing");
    else if (strcmp(error, error_code(ERROR_RATELIMITED)) == 0)
        error_send(c, reply_to, CODE_SLOW_DOWN, "slow down, too many messages...");
    else
        error_send(c, reply_to, CODE_MESSAGE, error);
}

static void ack_send(struct connection *c, const char *reply_to, const struct posted *posted)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(REPLY_MAX);
    struct json_writer w = json_writer_to(&out);
    json_open_object(&w);
    json_key(&w, "ok");
    json_bool(&w, true);
    reply_to_write(&w, reply_to);
    json_key_ts(&w, "ts", posted->ts);
    json_key(&w, "text");
    json_string_n(&w, posted->text, posted->text_length);
    json_key_int(&w, "seq", posted->seq);
    if (posted->is_duplicate)
        json_key_bool(&w, "is_duplicate", true);
    json_close_object(&w);
    if (!buffer_failed(&out))
        connection_send_text(c, "", out.data, out.length);
}

// Removes a finished call from its connection. Returns the connection to answer; NULL: it is gone.
static struct connection *method_call_end(struct method_call *call)
{
    struct connection *c = call->inbound ? call->inbound->connection : NULL;
    if (c) {
        list_remove(&call->link);
        call->inbound->call_count--;
    }
    return c;
}

static void method_call_drop(struct method_call *call)
{
    if (!call)
        return;
    (void)method_call_end(call);
    TAGGED_FREE(call);
}

static void failure_send(struct connection *c, const char *reply_to,
                         const struct request_outcome *outcome)
{
    // This code alone does not name the argument; the message does.
    bool is_vague = strcmp(outcome->error, error_code(ERROR_INVALID_ARGUMENTS)) == 0;
    refusal_send(c, reply_to, is_vague && outcome->message ? outcome->message : outcome->error);
}

static void on_posted(void *arg, const struct request_outcome *outcome)
{
    struct method_call *call = CAST(method_call, arg);
    const struct posted *posted = outcome->posted;
    bool alive = gateway_answer(call->gateway);
    if (alive && posted)
        subscribers_own_post(call->gateway, posted->channel_id, posted->seq, call->origin);
    struct connection *c = method_call_end(call);
    if (c && posted)
        ack_send(c, call->reply_to, posted);
    else if (c)
        failure_send(c, call->reply_to, outcome);
    TAGGED_FREE(call);
}

// Sends a method's reply, with `reply_to` inserted.
static void reply_send(struct connection *c, const char *reply_to, const char *text, size_t length)
{
    static const char ok[] = "{\"ok\":true";
    CLEANUP(buffer_done) struct buffer out = BUFFER(REPLY_MAX);
    buffer_append_text(&out, ok);
    if (reply_to[0] != '\0')
        buffer_append_format(&out, ",\"reply_to\":%s", reply_to);
    buffer_append(&out, text + sizeof ok - 1, length - (sizeof ok - 1));
    if (!buffer_failed(&out))
        connection_send_text(c, "", out.data, out.length);
}

static void on_marked(void *arg, const struct request_outcome *outcome)
{
    struct method_call *call = CAST(method_call, arg);
    (void)gateway_answer(call->gateway);
    struct connection *c = method_call_end(call);
    if (c && outcome->error[0] == '\0')
        reply_send(c, call->reply_to, outcome->reply, outcome->length);
    else if (c)
        failure_send(c, call->reply_to, outcome);
    TAGGED_FREE(call);
}

// Frames that call a method.
static const struct called {
    const char *type;
    const char *method;
    request_done_fn *fn;
    bool needs_id; // Slack's oldest clients post without one
} called[] = {
    {"message", "chat.postMessage", on_posted, false},
    {"mark", "channels.mark", on_marked, true},
};

static const struct called *called_find(const char *type)
{
    for (size_t i = 0; i < sizeof called / sizeof *called; i++)
        if (strcmp(called[i].type, type) == 0)
            return &called[i];
    return NULL;
}

// A client's message, parsed and as text.
struct inbound_text {
    json_t *message;
    const char *text;
    size_t length;
};

// -ERROR_MEMORY, or the error in the arguments.
static int request_make(struct method_call *call, const struct called *what,
                        const struct inbound_text *text, struct request **ret_request)
{
    struct request *request;
    int r = request_new(what->method, NULL, what->fn, call, &request);
    if (r < 0)
        return r;
    r = request_add_parsed(request, text->message, text->text, text->length);
    if (r < 0) {
        request_drop(request);
        return r;
    }
    *request_actor(request) = call->inbound->connection->actor;
    request_set_origin(request, call->origin);
    *ret_request = request;
    return 0;
}

// -ERROR_RATELIMITED: too many are in progress; -ERROR_MEMORY.
static int method_call_new(struct inbound *inbound, const char *reply_to,
                           struct method_call **ret_call)
{
    struct connection *c = inbound->connection;
    if (inbound->call_count >= c->gateway->options.settings.socket_calls_max) {
        metric_add(METRIC_SOCKET_CALLS, 1);
        return -ERROR_RATELIMITED;
    }
    struct method_call *call = TAGGED_NEW(method_call);
    if (!call)
        return -ERROR_MEMORY;
    call->gateway = c->gateway;
    call->inbound = inbound;
    memcpy(call->origin, c->id, sizeof call->origin);
    memcpy(call->reply_to, reply_to, sizeof call->reply_to);
    list_append(&inbound->calls, &call->link);
    inbound->call_count++;
    *ret_call = call;
    return 0;
}

static void method_call(struct inbound *inbound, const struct called *what,
                        const struct inbound_text *text, const char *reply_to)
{
    struct gateway *gateway = inbound->connection->gateway;
    struct method_call *call = NULL;
    struct request *request;
    int r = method_call_new(inbound, reply_to, &call);
    if (r >= 0)
        r = request_make(call, what, text, &request);
    if (r < 0) {
        method_call_drop(call);
        refusal_send(inbound->connection, reply_to, error_code(r));
        return;
    }
    gateway_ask(gateway);
    gateway->options.on_call(gateway->options.arg, request);
}

// Sends {"type":"pong","reply_to":5}, with the ping's other members.
static void pong_send(struct connection *c, json_t *ping)
{
    CLEANUP_JSON json_t *pong = json_object();
    json_object_set_new(pong, "type", json_string("pong"));
    if (json_object_get(ping, "id"))
        json_object_set(pong, "reply_to", json_object_get(ping, "id"));
    json_object_del(ping, "id");
    json_object_update_missing(pong, ping);
    char *text = json_dumps(pong, JSON_COMPACT);
    if (text)
        socket_answer(c, text, strlen(text));
    free(text);
}

// Sends an error: as an answer to a message with an id, otherwise as a frame `error`. `text` is
// static and needs no escaping.
static void error_answer(struct connection *c, const char *reply_to, int code, const char *text)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(REPLY_MAX);

    if (reply_to[0] != '\0') {
        error_send(c, reply_to, code, text);
        return;
    }
    buffer_append_format(&out, "{\"type\":\"error\",\"error\":{\"code\":%d,\"msg\":\"%s\"}}", code,
                         text);
    if (!buffer_failed(&out))
        connection_send_text(c, "error", out.data, out.length);
}

// Answers a message; without an id, only errors are sent.
static void outcome_send(struct connection *c, const char *reply_to, int r)
{
    static const char nothing[] = "{\"ok\":true}";

    if (r < 0)
        error_answer(c, reply_to, CODE_MESSAGE, error_code(r));
    else if (reply_to[0] != '\0')
        reply_send(c, reply_to, nothing, sizeof nothing - 1);
}

static void on_focused(void *arg, int r)
{
    struct method_call *call = CAST(method_call, arg);
    struct connection *c = method_call_end(call);

    if (c)
        outcome_send(c, call->reply_to, r);
    TAGGED_FREE(call);
}

// Answers once the focus has begun: a markUnread after the answer ends it.
static int focus_ask(struct inbound *inbound, struct feed *feed, const char *reply_to)
{
    struct method_call *call = NULL;
    int r = method_call_new(inbound, reply_to, &call);

    if (r >= 0)
        r = focus_begin(feed, &inbound->focuses, on_focused, call);
    if (r < 0)
        method_call_drop(call);
    return r;
}

// The answer of auth_refresh.
static void renewed_send(struct connection *c, const char *reply_to)
{
    CLEANUP(buffer_done) struct buffer out = BUFFER(REPLY_MAX);
    struct json_writer w = json_writer_to(&out);
    json_open_object(&w);
    json_key_bool(&w, "ok", true);
    json_key(&w, "reply_to");
    json_raw(&w, reply_to, strlen(reply_to));
    if (c->expires_ms > 0)
        json_key_int(&w, "expires_at", connection_expires_at(c));
    json_close_object(&w);
    if (!buffer_failed(&out))
        connection_send_text(c, "", out.data, out.length);
}

static void on_renewed(void *arg, int r, const struct result *result)
{
    struct method_call *call = CAST(method_call, arg);
    struct connection *c = method_call_end(call);
    if (c && r == 0)
        r = login_renewed(c, call->asked_ms, result);
    if (c && r == 0) {
        call->inbound->is_told = false;
        renewed_send(c, call->reply_to);
    } else if (c) {
        refusal_send(c, call->reply_to, error_code(r));
    }
    TAGGED_FREE(call);
}

// {"id":5,"type":"auth_refresh","token":"…"}: goes on with another token of the same user.
static void auth_refresh(struct inbound *inbound, const json_t *message, const char *reply_to)
{
    struct connection *c = inbound->connection;
    const json_t *token = json_object_get(message, "token");
    struct method_call *call = NULL;
    int r = json_string_length(token) >= 1 && json_string_length(token) <= JWT_BYTES_MAX
                ? method_call_new(inbound, reply_to, &call)
                : -ERROR_INVALID_TOKEN;
    if (r >= 0) {
        call->asked_ms = loop_now_ms(c->gateway->loop);
        r = login_renew(c->gateway, json_string_value(token), on_renewed, call);
    }
    if (r < 0) {
        method_call_drop(call);
        refusal_send(c, reply_to, error_code(r));
    }
}

void inbound_tick(struct inbound *inbound, int64_t now_ms)
{
    struct connection *c = inbound->connection;
    char frame[64];
    if (!c->native || inbound->is_told || c->expires_ms == 0 ||
        c->expires_ms - now_ms > EXPIRES_NOTICE_MS)
        return;
    inbound->is_told = true;
    int length = snprintf(frame, sizeof frame, "{\"type\":\"auth_expires\",\"at\":%" PRId64 "}",
                          connection_expires_at(c));
    connection_send_text(c, "auth_expires", frame, (size_t)length);
}

static void focus_change(struct inbound *inbound, const json_t *message, bool begins,
                         const char *reply_to)
{
    struct connection *c = inbound->connection;
    const char *channel = json_string_value(json_object_get(message, "channel"));
    struct feed *feed = channel ? feed_find(c->gateway, channel) : NULL;
    int r = feed && subscribers_have(feed, c) ? 0 : -ERROR_CHANNEL_NOT_FOUND;

    if (r == 0 && begins)
        r = focus_ask(inbound, feed, reply_to);
    else if (r == 0)
        focus_end(feed, c);
    if (r < 0 || !begins)
        outcome_send(c, reply_to, r);
}

// Writes to Redis that the user is active on this socket, and needs no pushes.
static void activity_report(struct inbound *inbound)
{
    const struct connection *c = inbound->connection;
    const struct gateway *gateway = c->gateway;
    int64_t now_ms = loop_now_ms(gateway->loop);
    if (gateway->options.active_s == 0 ||
        (inbound->active_ms > 0 && now_ms - inbound->active_ms < ACTIVE_INTERVAL_MS))
        return;
    inbound->active_ms = now_ms;
    presence_speak(gateway->cache, c->actor.user_id, c->id, gateway->options.active_s);
}

static void message_handle(struct inbound *inbound, const struct inbound_text *text)
{
    static const char bad_id[] = "id: must be a whole number, or a string of at most 64 bytes";
    struct connection *c = inbound->connection;
    json_t *message = text->message;
    char reply_to[REPLY_TO_SIZE];
    const char *type = json_string_value(json_object_get(message, "type"));
    const struct called *what = type ? called_find(type) : NULL;
    bool can_answer = reply_to_read(message, reply_to);
    if (!type || strcmp(type, "ping") != 0)
        activity_report(inbound);
    if (type && strcmp(type, "ping") == 0)
        pong_send(c, message);
    else if (what && can_answer && (reply_to[0] || !what->needs_id))
        method_call(inbound, what, text, reply_to);
    else if (type && strcmp(type, "auth_refresh") == 0 && reply_to[0])
        auth_refresh(inbound, message, reply_to);
    else if (what || (type && strcmp(type, "auth_refresh") == 0))
        error_answer(c, "", CODE_MESSAGE, bad_id);
    else if (type && strcmp(type, "typing") == 0)
        ephemeral_typing(c, &inbound->typed_ms,
                         json_string_value(json_object_get(message, "channel")));
    else if (type && strcmp(type, "presence_sub") == 0)
        presence_subscriber_ask(&inbound->presence_subscriber, json_object_get(message, "ids"),
                                false);
    else if (type && strcmp(type, "presence_query") == 0)
        presence_subscriber_ask(&inbound->presence_subscriber, json_object_get(message, "ids"),
                                true);
    else if (type && strcmp(type, "channel_focus") == 0)
        focus_change(inbound, message, true, reply_to);
    else if (type && strcmp(type, "channel_blur") == 0)
        focus_change(inbound, message, false, reply_to);
    else
        error_answer(c, reply_to, CODE_INVALID, type ? "unknown type" : "type is missing");
}

void inbound_message(struct inbound *inbound, const char *text, size_t length)
{
    static const char invalid[] =
        "{\"type\":\"error\",\"error\":{\"code\":1,\"msg\":\"invalid JSON\"}}";
    struct connection *c = inbound->connection;
    CLEANUP_JSON json_t *message = NULL;
    int r = json_read(text, length, JSON_DEPTH_MAX, c->gateway->options.settings.socket_values_max,
                      &message);
    metric_add(METRIC_SOCKET_VALUES, r == -ERROR_REQUEST_TOO_LARGE);
    if (r == 0 && json_is_object(message))
        message_handle(inbound, &(struct inbound_text){message, text, length});
    else
        connection_send_text(c, "error", invalid, sizeof invalid - 1);
}

void inbound_init(struct inbound *inbound, struct connection *c)
{
    *inbound = (struct inbound){.connection = c};
    list_init(&inbound->calls);
    focus_set_init(&inbound->focuses, c);
    presence_subscriber_init(&inbound->presence_subscriber, c);
}

void inbound_forget(struct inbound *inbound)
{
    LIST_FOREACH(link, &inbound->calls)
    {
        LIST_ITEM(link, struct method_call, link)->inbound = NULL;
        list_remove(link);
    }
    inbound->call_count = 0;
    if (inbound->active_ms > 0)
        presence_fall_silent(inbound->connection->gateway->cache,
                             inbound->connection->actor.user_id, inbound->connection->id);
    inbound->active_ms = 0;
    presence_subscriber_leave(&inbound->presence_subscriber);
}
