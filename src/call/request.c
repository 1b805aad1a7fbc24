// SPDX-License-Identifier: Apache-2.0
// A method call as its handler sees it: arguments, caller, and reply.
#include "call/transport.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

void request_init(struct request *request, int64_t reply_max_bytes, request_send_fn *send)
{
    request->verb = NULL;
    request->method = "";
    request->id = "";
    request->token = "";
    request->scope = NULL;
    request->granted = NULL;
    request->idempotency_key = "";
    request->host = "";
    request->origin[0] = '\0';
    request->known = "other";
    request->actor = (struct actor){0};
    arena_init(&request->arena);
    arguments_init(&request->arguments, &request->arena);
    request->http_errors = false;
    request->is_secret = false;
    request->is_webhook = false;
    request->replied = false;
    request->status = 0;
    request->error = "";
    request->message = NULL;
    request->retry_after[0] = '\0';
    buffer_init(&request->reply, (size_t)reply_max_bytes);
    request->reply_max_bytes = reply_max_bytes;
    request->started_us = clock_monotonic_us();
    request->send = send;
    request->load = NULL;
    request->admit = NULL;
    request->stream = NULL;
    request->file.object = NULL;
    request->read_fn = NULL;
    request->intake = NULL;
    request->owner[0] = '\0';
    request->body_bytes = 0;
    request->held_bytes = 0;
    request->outgo = NULL;
    request->reply_bytes = 0;
}

void request_done(struct request *request)
{
    request_release(request);
    buffer_done(&request->reply);
    arguments_done(&request->arguments);
    arena_done(&request->arena);
}

const char *request_method(const struct request *request)
{
    return request->method;
}

const char *request_id(const struct request *request)
{
    return request->id;
}

const char *request_token(const struct request *request)
{
    if (request->token[0] != '\0')
        return request->token;
    const char *token = request_arg(request, "token");
    return token ? token : "";
}

void request_read(struct request *request, request_read_fn *fn, void *arg)
{
    ASSERT(fn);
    if (!request->load) {
        fn(arg, 0);
        return;
    }
    request->read_fn = fn;
    request->read_arg = arg;
    request->load(request);
}

const char *request_idempotency_key(const struct request *request)
{
    return request->idempotency_key;
}

const char *request_host(const struct request *request)
{
    return request->host;
}

struct actor *request_actor(struct request *request)
{
    return &request->actor;
}

void request_set_origin(struct request *request, const char *origin)
{
    snprintf(request->origin, sizeof request->origin, "%s", origin);
}

const char *request_origin(const struct request *request)
{
    return request->origin;
}

void request_set_known(struct request *request, const char *name)
{
    request->known = name;
}

void request_set_secret(struct request *request)
{
    request->is_secret = true;
}

void request_set_scope(struct request *request, const char *scope)
{
    request->scope = scope;
}

void request_set_granted(struct request *request, const char *scopes)
{
    request->granted = scopes;
}

const char *request_arg(const struct request *request, const char *name)
{
    const struct argument *argument = arguments_find(&request->arguments, name);
    return argument ? argument->text : NULL;
}

size_t request_arg_length(const struct request *request, const char *name)
{
    const struct argument *argument = arguments_find(&request->arguments, name);
    return argument ? argument->length : 0;
}

int request_arg_json(const struct request *request, const char *name, int depth_max,
                     json_t **ret_value)
{
    const struct argument *argument = arguments_find(&request->arguments, name);
    if (!argument)
        return -ERROR_INVALID_JSON;
    if (argument->is_parsed && argument->json_r < 0)
        return argument->json_r;
    if (!argument->is_parsed)
        return json_read(argument->text, argument->length, depth_max, request->arguments.values_max,
                         ret_value);
    if (json_measure(argument->text, argument->length).depth > depth_max)
        return -ERROR_INVALID_JSON;
    *ret_value = json_incref(argument->json);
    return 0;
}

bool request_arg_is_text(const struct request *request, const char *name)
{
    const struct argument *argument = arguments_find(&request->arguments, name);
    return argument && argument->is_text;
}

int request_stream(struct request *request, struct body_sink *sink, request_streamed_fn *fn,
                   void *arg)
{
    return request->stream(request, sink, fn, arg);
}

int request_arg_set(struct request *request, const char *name, const char *text)
{
    const struct argument argument = {
        .name = name, .text = text, .length = strlen(text), .is_text = true};
    return arguments_add(&request->arguments, &argument);
}

char *request_copy(struct request *request, const char *text)
{
    return arena_copy(&request->arena, text, strlen(text));
}

int request_arg_set_copy(struct request *request, const char *name, const char *text)
{
    const char *copy = request_copy(request, text);
    return copy ? request_arg_set(request, name, copy) : -ERROR_MEMORY;
}

int request_arg_copy(struct request *request, const char *name, const char *other)
{
    struct argument argument = *arguments_find(&request->arguments, other);
    argument.name = name;
    json_incref(argument.json);
    int r = arguments_add(&request->arguments, &argument);
    if (r < 0)
        json_decref(argument.json);
    return r;
}

void request_args_each(const struct request *request, request_arg_fn *fn, void *arg)
{
    const struct arguments *arguments = &request->arguments;
    for (size_t i = 0; i < arguments->count; i++) {
        const struct argument *argument = &arguments->items[i];
        if (strcmp(argument->name, "token") != 0 && !arguments_is_hidden(arguments, i))
            fn(arg, argument->name, argument->text);
    }
}
