// SPDX-License-Identifier: Apache-2.0
// Requests from within the process: method calls by sockets and commands.
#include "request_internal.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

enum { LOCAL_REPLY_MAX_BYTES = 64 * 1024 * 1024 };

struct internal_request {
    struct request request; // must be first: the two are cast to each other
    request_done_fn *fn;
    void *arg;
};

static void internal_request_free(struct internal_request *local)
{
    request_done(&local->request);
    free(local);
}

static void internal_request_send(struct request *request)
{
    struct internal_request *local = (struct internal_request *)request;
    local->fn(local->arg, request->reply.data, request->reply.length);
    internal_request_free(local);
}

static int local_fill(struct request *request, const char *method, const char *token,
                      const char *json, size_t length)
{
    request->method = arena_copy(&request->arena, method, strlen(method));
    if (!request->method)
        return -ERROR_MEMORY;
    if (token)
        request->token = arena_copy(&request->arena, token, strlen(token));
    if (!request->token)
        return -ERROR_MEMORY;
    return json ? arguments_add_json(&request->arguments, json, length) : 0;
}

int request_new(const char *method, const char *token, const char *json, size_t length,
                request_done_fn *fn, void *arg, struct request **ret_request)
{
    struct internal_request *local = malloc(sizeof *local);
    if (!local)
        return -ERROR_MEMORY;
    request_init(&local->request, LOCAL_REPLY_MAX_BYTES, internal_request_send);
    local->fn = fn;
    local->arg = arg;
    int r = local_fill(&local->request, method, token, json, length);
    if (r < 0) {
        internal_request_free(local);
        return r;
    }
    *ret_request = &local->request;
    return 0;
}
