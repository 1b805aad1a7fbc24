// SPDX-License-Identifier: Apache-2.0
// Handles a client's messages: posts, pings, focus, presence.
#include "inbound.h"

#include "../connection.h"
#include "../core.h"
#include "../ephemeral.h"
#include "../focus.h"
#include "../seats.h"
#include "../stream.h"

#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"

#include <stdlib.h>
#include <string.h>

enum { CALLS_MAX = 16, REPLY_TO_SIZE = 72, REPLY_MAX = 1 << 20 };

// Codes of errors in answers to clients, as Slack's clients know them.
enum { CODE_INVALID = 1, CODE_MESSAGE = 2, CODE_SLOW_DOWN = -1 };

// One post in work.
struct call {
    struct list link; // in inbound->calls
    struct gateway *gateway;
    struct inbound *inbound; // NULL once its connection is gone
    char origin[EVENT_ID_SIZE];
    char reply_to[REPLY_TO_SIZE]; // JSON
};

// The client's id as JSON; "" when it sent none that can be echoed.
static void reply_to_read(const json_t *message, char *ret_text)
{
    const json_t *id = json_object_get(message, "id");
    ret_text[0] = '\0';
    if (!json_is_integer(id) && !json_is_string(id))
        return;
    size_t length = json_dumpb(id, ret_text, REPLY_TO_SIZE - 1, JSON_ENCODE_ANY | JSON_COMPACT);
    ret_text[length < REPLY_TO_SIZE ? length : 0] = '\0';
}

static void error_send(struct connection *c, const char *reply_to, int code, const char *text)
{
    CLEANUP(buffer_done) struct buffer out;
    buffer_init(&out, REPLY_MAX);
    struct json_writer w = json_writer_to(&out);
    json_open_object(&w);
    json_key(&w, "ok");
    json_bool(&w, false);
    json_key(&w, "reply_to");
    json_raw(&w, reply_to, strlen(reply_to));
    json_key(&w, "error");
    json_open_object(&w);
    json_key_int(&w, "code", code);
    json_key_string(&w, "msg", text);
    json_close_object(&w);
    json_close_object(&w);
    if (!buffer_failed(&out))
        connection_send_text(c, out.data, out.length);
}

// What response_metadata.messages says first: which argument is bad, and why.
static const char *first_message(const json_t *reply)
{
    static const char mark[] = "[ERROR] ";
    const json_t *messages =
        json_object_get(json_object_get(reply, "response_metadata"), "messages");
    const char *message = json_string_value(json_array_get(messages, 0));
    bool is_marked = message && strncmp(message, mark, sizeof mark - 1) == 0;
    return is_marked ? message + sizeof mark - 1 : message;
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

static void ack_send(struct connection *c, const char *reply_to, const json_t *reply)
{
    CLEANUP(buffer_done) struct buffer out;
    const json_t *text = json_object_get(json_object_get(reply, "message"), "text");
    const char *ts = json_string_value(json_object_get(reply, "ts"));
    buffer_init(&out, REPLY_MAX);
    struct json_writer w = json_writer_to(&out);
    json_open_object(&w);
    json_key(&w, "ok");
    json_bool(&w, true);
    json_key(&w, "reply_to");
    json_raw(&w, reply_to, strlen(reply_to));
    json_key_string(&w, "ts", ts ? ts : "");
    json_key(&w, "text");
    json_string_n(&w, json_is_string(text) ? json_string_value(text) : "",
                  json_string_length(text));
    json_key_int(&w, "seq", json_integer_value(json_object_get(reply, "seq")));
    if (json_is_true(json_object_get(reply, "is_duplicate"))) {
        json_key(&w, "is_duplicate");
        json_bool(&w, true);
    }
    json_close_object(&w);
    if (!buffer_failed(&out))
        connection_send_text(c, out.data, out.length);
}

static void on_reply(void *arg, const char *text, size_t length)
{
    struct call *call = arg;
    CLEANUP_JSON json_t *reply = json_loadb(text, length, 0, NULL);
    struct connection *c = call->inbound ? call->inbound->connection : NULL;
    bool posted = json_is_true(json_object_get(reply, "ok"));
    bool alive = gateway_answer(call->gateway);
    const char *channel = json_string_value(json_object_get(reply, "channel"));
    if (alive && posted && channel)
        seats_own_post(call->gateway, channel, json_integer_value(json_object_get(reply, "seq")),
                       call->origin);
    if (c) {
        const char *error = json_string_value(json_object_get(reply, "error"));
        const char *message = first_message(reply);
        // This code alone names no argument.
        if (error && message && strcmp(error, error_code(ERROR_INVALID_ARGUMENTS)) == 0)
            error = message;
        list_remove(&call->link);
        call->inbound->call_count--;
        if (posted)
            ack_send(c, call->reply_to, reply);
        else
            refusal_send(c, call->reply_to, error ? error : error_code(ERROR_INTERNAL));
    }
    free(call);
}

static void post(struct inbound *inbound, const char *text, size_t length, const char *reply_to)
{
    struct connection *c = inbound->connection;
    struct gateway *gateway = c->gateway;
    struct request *request;
    if (inbound->call_count >= CALLS_MAX) {
        refusal_send(c, reply_to, error_code(ERROR_RATELIMITED));
        return;
    }
    struct call *call = calloc(1, sizeof *call);
    if (!call) {
        refusal_send(c, reply_to, error_code(ERROR_MEMORY));
        return;
    }
    int r = request_new("chat.postMessage", NULL, text, length, on_reply, call, &request);
    if (r < 0) {
        free(call);
        refusal_send(c, reply_to, error_code(r));
        return;
    }
    gateway_ask(gateway);
    call->gateway = gateway;
    call->inbound = inbound;
    memcpy(call->origin, c->id, sizeof call->origin);
    memcpy(call->reply_to, reply_to, sizeof call->reply_to);
    list_append(&inbound->calls, &call->link);
    inbound->call_count++;
    *request_actor(request) = c->actor;
    request_set_origin(request, c->id);
    gateway->options.on_call(gateway->options.arg, request);
}

// {"type":"pong","reply_to":5} and whatever else the ping held.
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
        connection_send_text(c, text, strlen(text));
    free(text);
}

// An answer to what has an id; else an error frame, or nothing when all is well.
static void outcome_send(struct connection *c, const char *reply_to, int r)
{
    CLEANUP(buffer_done) struct buffer out;

    buffer_init(&out, REPLY_MAX);
    if (r < 0 && reply_to[0] != '\0') {
        error_send(c, reply_to, CODE_MESSAGE, error_code(r));
        return;
    }
    if (r < 0)
        buffer_append_format(&out, "{\"type\":\"error\",\"error\":{\"code\":%d,\"msg\":\"%s\"}}",
                             CODE_MESSAGE, error_code(r));
    else if (reply_to[0] != '\0')
        buffer_append_format(&out, "{\"ok\":true,\"reply_to\":%s}", reply_to);
    if (out.length > 0 && !buffer_failed(&out))
        connection_send_text(c, out.data, out.length);
}

static void focus_change(struct inbound *inbound, const json_t *message, bool begins,
                         const char *reply_to)
{
    struct connection *c = inbound->connection;
    const char *channel = json_string_value(json_object_get(message, "channel"));
    struct stream *stream = channel ? stream_find(c->gateway, channel) : NULL;
    int r = stream && seats_have(stream, c) ? 0 : -ERROR_CHANNEL_NOT_FOUND;

    if (r == 0 && begins)
        r = focus_begin(stream, c, &inbound->focus_count);
    else if (r == 0)
        focus_end(stream, c);
    outcome_send(c, reply_to, r);
}

static void message_handle(struct inbound *inbound, json_t *message, const char *text,
                           size_t length)
{
    static const char no_id[] = "{\"type\":\"error\",\"error\":{\"code\":2,\"msg\":\"id: must be a "
                                "whole number, or a string of at most 64 bytes\"}}";
    struct connection *c = inbound->connection;
    char reply_to[REPLY_TO_SIZE];
    const char *type = json_string_value(json_object_get(message, "type"));
    reply_to_read(message, reply_to);
    if (type && strcmp(type, "ping") == 0)
        pong_send(c, message);
    else if (type && strcmp(type, "message") == 0 && reply_to[0])
        post(inbound, text, length, reply_to);
    else if (type && strcmp(type, "typing") == 0)
        ephemeral_typing(c, &inbound->typed_ms,
                         json_string_value(json_object_get(message, "channel")));
    else if (type && strcmp(type, "presence_sub") == 0)
        watch_ask(&inbound->watcher, json_object_get(message, "ids"), false);
    else if (type && strcmp(type, "presence_query") == 0)
        watch_ask(&inbound->watcher, json_object_get(message, "ids"), true);
    else if (type && strcmp(type, "channel_focus") == 0)
        focus_change(inbound, message, true, reply_to);
    else if (type && strcmp(type, "channel_blur") == 0)
        focus_change(inbound, message, false, reply_to);
    else if (type && strcmp(type, "message") == 0)
        connection_send_text(c, no_id, sizeof no_id - 1);
    else if (reply_to[0])
        error_send(c, reply_to, CODE_INVALID, type ? "unknown type" : "type is missing");
}

void inbound_message(struct inbound *inbound, const char *text, size_t length)
{
    static const char invalid[] =
        "{\"type\":\"error\",\"error\":{\"code\":1,\"msg\":\"invalid JSON\"}}";
    struct connection *c = inbound->connection;
    CLEANUP_JSON json_t *message = NULL;
    if (json_read(text, length, JSON_DEPTH_MAX, c->gateway->options.message_values_max, &message) ==
            0 &&
        json_is_object(message))
        message_handle(inbound, message, text, length);
    else
        connection_send_text(c, invalid, sizeof invalid - 1);
}

void inbound_init(struct inbound *inbound, struct connection *c)
{
    *inbound = (struct inbound){.connection = c};
    list_init(&inbound->calls);
    watch_init(&inbound->watcher, c);
}

void inbound_forget(struct inbound *inbound)
{
    LIST_FOREACH(link, &inbound->calls)
    {
        LIST_ITEM(link, struct call, link)->inbound = NULL;
        list_remove(link);
    }
    inbound->call_count = 0;
    watch_forget(&inbound->watcher);
}
