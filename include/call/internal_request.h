// SPDX-License-Identifier: Apache-2.0
// Calls of methods from within the process: by sockets and by commands. The method sees a request
// like any other. All on one loop's thread.
#pragma once

#include "call/request.h"

struct posted;

// How a call ended. Everything is valid while the function runs.
struct request_outcome {
    const char *error;   // the code; "": the call succeeded
    const char *message; // what is wrong, beginning with the argument's name; may be NULL
    const char *reply;   // a JSON object; "" if there is `posted`
    size_t length;
    const struct posted *posted; // what chat.postMessage replies (chat/message.h); else NULL
};

// Called once, inside the call of the method or on a later turn; then the request is freed.
typedef void request_done_fn(void *arg, const struct request_outcome *outcome);

// Makes a request without arguments; `token` may be NULL. The caller hands it to api_call(), or
// frees it with request_drop(). -ERROR_MEMORY.
NODISCARD int request_new(const char *method, const char *token, request_done_fn *fn, void *arg,
                          struct request **ret_request);
void request_drop(struct request *request); // takes NULL; `fn` is not called

// Adds the members of a JSON object as arguments. Once per request. -ERROR_INVALID_JSON, …
NODISCARD int request_add_json(struct request *request, const char *text, size_t length);
// The same for an object that is parsed already, from `text`. Takes a reference.
NODISCARD int request_add_parsed(struct request *request, json_t *object, const char *text,
                                 size_t length);

// Replies with the message itself and ends the request. False: it came by HTTP, and needs JSON.
NODISCARD bool request_reply_posted(struct request *request, const struct posted *posted);
