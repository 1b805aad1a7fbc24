// SPDX-License-Identifier: Apache-2.0
// One call of a method, wherever it came from (HTTP, a socket, the command line): what was asked,
// and the reply being written. Lives on one loop; belongs to whoever made it; ends with exactly one
// request_reply_*() call, after which the handler must not touch it again.
#pragma once

#include "base/actor.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json_writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;

// What was asked.
const char *request_method(const struct request *request); // "chat.postMessage"
const char *request_id(const struct request *request);     // X-Request-Id
const char *
request_token(const struct request *request); // "" when none; header before body before query
const char *request_idempotency_key(const struct request *request); // header, "" when none
const char *request_host(const struct request *request);            // Host header, "" when none
struct actor *request_actor(struct request *request);

// The socket that the call came by, "" when by none; copied (at most 23 characters).
void request_set_origin(struct request *request, const char *origin);
const char *request_origin(const struct request *request);

// Names the method for metrics: `name` is static text of the method table. Unless called, it is
// counted as "other".
void request_set_known(struct request *request, const char *name);

// Names the scope that the method needs: static text, or NULL.
void request_set_scope(struct request *request, const char *scope);

// Arguments: the union of query, form and JSON body (body wins). `ret`-less getters answer NULL or
// the default when absent. A JSON number or boolean reads as its text; null reads as absent; an
// array or object reads as its compact JSON text.
const char *
request_arg(const struct request *request,
            const char *name); // NUL-terminated, valid for the request's life; NULL when absent
size_t request_arg_length(const struct request *request, const char *name);
bool request_arg_is_text(const struct request *request,
                         const char *name); // a string, number or boolean (not array/object)

// Adds an argument as if it had been sent, in place of one of that name: `text`, which stays until
// the request's end, or the value of the argument `other`, which is there.
NODISCARD int request_arg_set(struct request *request, const char *name, const char *text);
NODISCARD int request_arg_copy(struct request *request, const char *name, const char *other);

// Lets fn(arg, name, text) see each argument in turn, once, but for `token` (api.test echoes them).
typedef void request_arg_fn(void *arg, const char *name, const char *text);
void request_args_each(const struct request *request, request_arg_fn *fn, void *arg);

// The reply, written as one JSON object: request_reply_open() writes {"ok":true and returns a
// writer for more members; request_reply_close() writes } and sends it.
struct json_writer *request_reply_open(struct request *request);
void request_reply_close(struct request *request);

// As request_reply_open(), but begins {"ok":false,"error":code with a code that the caller asked
// for (api.test).
struct json_writer *request_reply_open_failed(struct request *request, const char *code);

// The reply {"ok":true, …members of `json`}: `json` is a JSON object's text.
void request_reply_object(struct request *request, const char *json, size_t length);

// The reply {"ok":false,"error":code}; the second with response_metadata.messages ["[ERROR] …"].
void request_reply_error(struct request *request, int r);
void request_reply_error_message(struct request *request, int r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// The same, with more members ("\"needed\":\"chat:write\"") after the error.
void request_reply_error_members(struct request *request, int r, const char *members);
// The error ratelimited: HTTP 429 in either form, to be tried again after `seconds` (Retry-After).
void request_reply_ratelimited(struct request *request, int64_t seconds);

// For whoever makes requests other than HTTP: `json` holds the arguments (a JSON object's text, may
// be NULL); `fn` gets the finished reply's text once and the request is freed after it.
typedef void request_done_fn(void *arg, const char *reply, size_t length);
NODISCARD int request_new(const char *method, const char *token, const char *json, size_t length,
                          request_done_fn *fn, void *arg, struct request **ret_request);
