// SPDX-License-Identifier: Apache-2.0
// Requests from within the process: method calls by sockets and commands.
#include "call/internal_request.h"

#include "call/transport.h"

#include "base/check.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { INTERNAL_REPLY_MAX_BYTES = 64 * 1024 * 1024 };

struct internal_request {
    struct request request; // must be first: the two are cast to each other
    uint32_t tag;
    request_done_fn *fn;
    void *arg;
    const struct posted *posted;
};

static void outcome_send(struct request *request);

// NULL: the request came by HTTP.
static struct internal_request *internal_request_of(struct request *request)
{
    return request->send == outcome_send ? CAST(internal_request, (void *)request) : NULL;
}

static void internal_request_free(struct internal_request *internal)
{
    request_done(&internal->request);
    TAGGED_FREE(internal);
}

static void outcome_send(struct request *request)
{
    struct internal_request *internal = internal_request_of(request);
    const struct request_outcome outcome = {
        .error = request->error,
        .message = request->message,
        .reply = request->reply.length > 0 ? request->reply.data : "",
        .length = request->reply.length,
        .posted = internal->posted,
    };
    internal->fn(internal->arg, &outcome);
    internal_request_free(internal);
}

static int names_set(struct request *request, const char *method, const char *token)
{
    request->method = arena_copy(&request->arena, method, strlen(method));
    if (request->method && token)
        request->token = arena_copy(&request->arena, token, strlen(token));
    return request->method && request->token ? 0 : -ERROR_MEMORY;
}

int request_new(const char *method, const char *token, request_done_fn *fn, void *arg,
                struct request **ret_request)
{
    ASSERT(fn);
    // Not zeroed: the request's arena and arguments have room for some KB within.
    struct internal_request *internal = malloc(sizeof *internal);
    if (!internal)
        return -ERROR_MEMORY;
    request_init(&internal->request, INTERNAL_REPLY_MAX_BYTES, outcome_send);
    internal->tag = TAG(internal_request);
    internal->fn = fn;
    internal->arg = arg;
    internal->posted = NULL;
    int r = names_set(&internal->request, method, token);
    if (r < 0) {
        internal_request_free(internal);
        return r;
    }
    *ret_request = &internal->request;
    return 0;
}

void request_drop(struct request *request)
{
    if (request)
        internal_request_free(internal_request_of(request));
}

int request_add_json(struct request *request, const char *text, size_t length)
{
    return arguments_add_json(&request->arguments, text, length);
}

int request_add_parsed(struct request *request, json_t *object, const char *text, size_t length)
{
    return arguments_add_parsed(&request->arguments, object, text, length);
}

bool request_reply_posted(struct request *request, const struct posted *posted)
{
    struct internal_request *internal = internal_request_of(request);
    if (!internal)
        return false;
    ASSERT(posted && !request->replied);
    internal->posted = posted;
    request_reply_done(request);
    return true;
}
