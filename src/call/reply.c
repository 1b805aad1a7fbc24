// SPDX-License-Identifier: Apache-2.0
// Writes the body of every reply: in Slack's format or, if the caller asked for HTTP statuses, as
// application/problem+json (RFC 9457) with Slack's members.
#include "call/transport.h"

#include "webhook_reply.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// REQUESTED_STATUS: the status of any error that the caller asked for (api.test).
enum { REPLY_MESSAGE_SIZE = 512, REQUESTED_STATUS = 400, BUSY_RETRY_S = 1, REPLY_RETRY_S = 1 };

static void reply_account(const struct request *request)
{
    int64_t duration_us = clock_monotonic_us() - request->started_us;
    metric_request(request->known, request->error, duration_us);
    if (!request->verb)
        return;
    struct log_access access = {
        .request_id = request->id,
        .verb = request->verb,
        .method = request->method,
        .user = request->actor.user_id,
        .error = request->error,
        .status = request->status,
        .duration_us = duration_us,
        .reply_bytes = (int64_t)request->reply.length,
    };
    log_access(&access);
}

void request_reply_done(struct request *request)
{
    request->replied = true;
    if (request->is_webhook)
        webhook_reply_write(request);
    reply_account(request);
    request->send(request);
}

struct json_writer *request_reply_open(struct request *request)
{
    ASSERT(!request->replied);
    request->writer = json_writer_to(&request->reply);
    json_open_object(&request->writer);
    json_key_bool(&request->writer, "ok", true);
    return &request->writer;
}

// Truncates a message at the start of a code point: half of one would be invalid JSON.
static void message_cut(char *message, size_t length, size_t size)
{
    if (length < size)
        return;
    size_t end = size - 1;
    while (end > 0 && ((unsigned char)message[end - 1] & 0xC0) == 0x80)
        end--;
    if (end > 0 && ((unsigned char)message[end - 1] & 0x80) != 0)
        end--;
    message[end] = '\0';
}

// The members required by RFC 9457. The title is `code` with blanks: "channel not found".
static void problem_members(struct json_writer *writer, const struct request *request, int status,
                            const char *code, const char *message)
{
    char text[128];
    int length = snprintf(text, sizeof text, "urn:tidings:error:%s", code);
    message_cut(text, (size_t)length, sizeof text);
    json_key_string(writer, "type", text);
    length = snprintf(text, sizeof text, "%s", code);
    message_cut(text, (size_t)length, sizeof text);
    for (char *at = text; *at != '\0'; at++) {
        if (*at == '_')
            *at = ' ';
    }
    json_key_string(writer, "title", text);
    json_key_int(writer, "status", status);
    json_key_string(writer, "detail", message ? message : text);
    snprintf(text, sizeof text, "/api/%.100s", request->method);
    json_key_string(writer, "instance", text);
    json_key_string(writer, "code", code);
}

// Messages about an argument have the form "name: what is wrong" or "missing required field: name".
static void problem_errors(struct json_writer *writer, const char *message)
{
    static const char missing[] = "missing required field: ";
    bool is_missing = strncmp(message, missing, sizeof missing - 1) == 0;
    const char *name = is_missing ? message + sizeof missing - 1 : message;
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    char parameter[64];

    if (length == 0 || length >= sizeof parameter || (!is_missing && name[length] != ':'))
        return;
    snprintf(parameter, sizeof parameter, "%.*s", (int)length, name);
    json_key(writer, "errors");
    json_open_array(writer);
    json_open_object(writer);
    json_key_string(writer, "parameter", parameter);
    json_key_string(writer, "detail", message);
    json_close_object(writer);
    json_close_array(writer);
}

struct json_writer *request_reply_open_failed(struct request *request, const char *code)
{
    ASSERT(!request->replied);
    request->writer = json_writer_to(&request->reply);
    json_open_object(&request->writer);
    if (request->http_errors)
        problem_members(&request->writer, request, REQUESTED_STATUS, code, NULL);
    json_key_bool(&request->writer, "ok", false);
    json_key_string(&request->writer, "error", code);
    request->error = "requested"; // a metrics label: never the caller's text
    return &request->writer;
}

void request_reply_close(struct request *request)
{
    json_close_object(&request->writer);
    if (buffer_failed(&request->reply)) {
        metric_add(METRIC_HTTP_REPLY_TOO_LARGE, 1);
        request_reply_error(request, -ERROR_INTERNAL);
        return;
    }
    if (request_hold_reply(request) < 0) {
        buffer_done(&request->reply);
        buffer_init(&request->reply, (size_t)request->reply_max_bytes);
        request_reply_ratelimited(request, REPLY_RETRY_S);
        return;
    }
    bool is_problem = request->http_errors && request->error[0] != '\0';
    request->status = is_problem ? REQUESTED_STATUS : 200;
    request_reply_done(request);
}

void request_reply_file(struct request *request, const struct reply_file *file)
{
    ASSERT(!request->replied);
    request->file = *file;
    request->status = 200;
    request_reply_done(request);
}

void request_reply_object(struct request *request, const char *json, size_t length)
{
    const char *members = memchr(json, '{', length);
    const char *end = memrchr(json, '}', length);
    ASSERT(members && end);
    members++;
    while (strchr(" \t\r\n", *members))
        members++;
    request_reply_open(request);
    if (members < end) {
        buffer_append_byte(&request->reply, ',');
        buffer_append(&request->reply, members, (size_t)(end - members));
    }
    request_reply_close(request);
}

static void error_write(struct request *request, int status, const char *code, const char *message,
                        const char *members)
{
    buffer_clear(&request->reply);
    struct json_writer writer = json_writer_to(&request->reply);
    json_open_object(&writer);
    if (request->http_errors)
        problem_members(&writer, request, status, code, message);
    if (request->http_errors && message)
        problem_errors(&writer, message);
    json_key_bool(&writer, "ok", false);
    json_key_string(&writer, "error", code);
    if (members) {
        buffer_append_byte(&request->reply, ',');
        buffer_append_text(&request->reply, members);
    }
    if (message) {
        char line[REPLY_MESSAGE_SIZE + 16];
        snprintf(line, sizeof line, "[ERROR] %s", message);
        json_key(&writer, "response_metadata");
        json_open_object(&writer);
        json_key(&writer, "messages");
        json_open_array(&writer);
        json_text(&writer, line);
        json_close_array(&writer);
        json_close_object(&writer);
    }
    json_close_object(&writer);
}

static void error_send(struct request *request, int r, const char *message, const char *members)
{
    ASSERT(!request->replied);
    int status = error_http_status(r);
    request->error = error_code(r);
    request->message = message;
    request->status = request->http_errors ? status : 200;
    if (r == -ERROR_BUSY) // overloaded at the moment
        snprintf(request->retry_after, sizeof request->retry_after, "%d", BUSY_RETRY_S);
    error_write(request, status, request->error, message, members);
    request_reply_done(request);
}

void request_reply_error(struct request *request, int r)
{
    error_send(request, r, NULL, NULL);
}

void request_reply_error_message(struct request *request, int r, const char *format, ...)
{
    char message[REPLY_MESSAGE_SIZE];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(message, sizeof message, format, values);
    va_end(values);
    if (length > 0)
        message_cut(message, (size_t)length, sizeof message);
    error_send(request, r, message, NULL);
}

void request_reply_unread(struct request *request, int r)
{
    const char *error_text = request->arguments.error_text;
    if (error_text[0] != '\0')
        request_reply_error_message(request, r, "%s", error_text);
    else
        request_reply_error(request, r);
}

void request_reply_error_members(struct request *request, int r, const char *members)
{
    error_send(request, r, NULL, members);
}

// The SDKs wait as the header says, but read it only with status 429.
void request_reply_ratelimited(struct request *request, int64_t seconds)
{
    ASSERT(!request->replied);
    request->error = error_code(-ERROR_RATELIMITED);
    request->status = error_http_status(-ERROR_RATELIMITED);
    snprintf(request->retry_after, sizeof request->retry_after, "%d", (int)seconds);
    error_write(request, request->status, request->error, NULL, NULL);
    request_reply_done(request);
}

void request_write_plain_error(struct request *request, int status, const char *code,
                               const char *message)
{
    request->status = status;
    request->error = code;
    error_write(request, status, code, message, NULL);
    if (request->is_webhook)
        webhook_reply_write(request);
}
