// SPDX-License-Identifier: Apache-2.0
// One call of a method, wherever it came from (HTTP, a socket, the command line): the arguments,
// and the reply being written. Lives on one loop. A handler owes exactly one reply:
// request_reply_close() or another request_reply_*() function, after which it must not touch the
// request again.
#pragma once

#include "base/actor.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json_writer.h"

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;

// The call.
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

// Sets the name under which metrics count the call: static text of the method table. Otherwise it
// is counted as "other".
void request_set_known(struct request *request, const char *name);

// Sets the scope that the method needs: static text, or NULL.
void request_set_scope(struct request *request, const char *scope);

// A request comes with its arguments unread, but for the token: who calls can be found out before
// work is put into what may be megabytes. Reads them, then calls fn(arg, r), inside the call or on
// a later turn; request_reply_unread() answers a negative r. Once per request.
typedef void request_read_fn(void *arg, int r);
void request_read(struct request *request, request_read_fn *fn, void *arg);
void request_reply_unread(struct request *request, int r);

// Counts the bytes of the body, if there are any, as those of user `owner` until the request ends:
// -ERROR_RATELIMITED when this user has too many on this loop already.
NODISCARD int request_charge(struct request *request, const char *owner);
int64_t request_body_bytes(const struct request *request);
// Answers server_options.on_admit: the body is that of user `owner`.
void request_admit(struct request *request, const char *owner);

// Arguments: those of the query, and of the form or JSON body, which wins. A JSON number or boolean
// reads as its text; null reads as absent; an array or object reads as its compact JSON text.
const char *
request_arg(const struct request *request,
            const char *name); // NUL-terminated, valid for the request's life; NULL when absent
size_t request_arg_length(const struct request *request, const char *name);
bool request_arg_is_text(const struct request *request,
                         const char *name); // a string, number or boolean (not array/object)

// Reads an argument as JSON, of at most the service's number of values. The caller owns the value.
// -ERROR_INVALID_JSON, -ERROR_REQUEST_TOO_LARGE (too many values).
NODISCARD int request_arg_json(const struct request *request, const char *name, int depth_max,
                               json_t **ret_value);

// Sets the argument `name` as if it had been sent, replacing one of that name: to `text`, which
// must stay valid until the request's end, or to the value of the argument `other`, which must
// exist.
NODISCARD int request_arg_set(struct request *request, const char *name, const char *text);
NODISCARD int request_arg_copy(struct request *request, const char *name, const char *other);

// Calls fn(arg, name, text) once for each argument except `token` (for api.test, which echoes
// them).
typedef void request_arg_fn(void *arg, const char *name, const char *text);
void request_args_each(const struct request *request, request_arg_fn *fn, void *arg);

// The reply will have a secret (a token, a ticket): it is never compressed, since its length would
// tell of the secret whether it has something in common with what the caller chose.
void request_set_secret(struct request *request);

// The reply, written as one JSON object: request_reply_open() writes {"ok":true and returns a
// writer for more members; request_reply_close() writes } and sends it.
struct json_writer *request_reply_open(struct request *request);
void request_reply_close(struct request *request);

// Like request_reply_open(), but writes {"ok":false,"error":code with a code that the caller chose
// (api.test).
struct json_writer *request_reply_open_failed(struct request *request, const char *code);

// The reply {"ok":true, …members of `json`}: `json` is a JSON object's text.
void request_reply_object(struct request *request, const char *json, size_t length);

// Replies {"ok":false,"error":code}; the second also response_metadata.messages ["[ERROR] …"].
void request_reply_error(struct request *request, int r);
void request_reply_error_message(struct request *request, int r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// The same, with more members ("\"needed\":\"chat:write\"") after the error.
void request_reply_error_members(struct request *request, int r, const char *members);
// Replies with the error ratelimited: HTTP 429 in both error modes, with `seconds` as Retry-After.
void request_reply_ratelimited(struct request *request, int64_t seconds);

// Makes a request that did not come by HTTP. `json` holds the arguments (the text of a JSON object,
// may be NULL). `fn` gets the text of the finished reply, once; then the request is freed.
typedef void request_done_fn(void *arg, const char *reply, size_t length);
NODISCARD int request_new(const char *method, const char *token, const char *json, size_t length,
                          request_done_fn *fn, void *arg, struct request **ret_request);
