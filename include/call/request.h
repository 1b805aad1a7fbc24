// SPDX-License-Identifier: Apache-2.0
// A method call from any source (HTTP, socket, command line): its arguments, and the reply being
// written. Belongs to one loop. The handler must reply exactly once, by request_reply_close() or
// another request_reply_*() function, and must not use the request afterwards.
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
request_token(const struct request *request); // "" if absent; header before body before query
const char *request_idempotency_key(const struct request *request); // from the header; "" if absent
const char *request_host(const struct request *request); // from the Host header; "" if absent
struct actor *request_actor(struct request *request);

// The socket that received the call; "" if none. Copied (at most 23 characters).
void request_set_origin(struct request *request, const char *origin);
const char *request_origin(const struct request *request);

// Sets the method's name for metrics: static text from the method table. Without it, the call is
// counted as "other".
void request_set_known(struct request *request, const char *name);

// Sets the scope that the method requires: static text, or NULL.
void request_set_scope(struct request *request, const char *scope);

// Sets the scopes of the caller's token, "a,b", for the reply's headers. Must stay valid until the
// request ends.
void request_set_granted(struct request *request, const char *scopes);

// Initially only the token of a request is parsed, so that the caller can be authenticated before
// megabytes of arguments are. request_read() parses the arguments and calls fn(arg, r), inside the
// call or on a later turn. Answer a negative r by request_reply_unread(). Once per request.
typedef void request_read_fn(void *arg, int r);
void request_read(struct request *request, request_read_fn *fn, void *arg);
void request_reply_unread(struct request *request, int r);

// Charges the bytes of the body, if any, to user `owner` until the request ends.
// -ERROR_RATELIMITED: this user's requests hold too many bytes on this loop already.
NODISCARD int request_charge(struct request *request, const char *owner);
int64_t request_body_bytes(const struct request *request);
// The positive answer to server_options.on_admit: charges the body to user `owner`.
void request_admit(struct request *request, const char *owner);

// Arguments of the query and of the form or JSON body; the body wins. JSON numbers and booleans
// read as text, null as absent, arrays and objects as compact JSON text.
const char *
request_arg(const struct request *request,
            const char *name); // NUL-terminated, valid until the request ends; NULL if absent
size_t request_arg_length(const struct request *request, const char *name);
bool request_arg_is_text(const struct request *request,
                         const char *name); // a string, number or boolean (not array/object)

// Parses an argument as JSON with at most the configured number of values. The caller owns the
// value. -ERROR_INVALID_JSON, -ERROR_REQUEST_TOO_LARGE (too many values).
NODISCARD int request_arg_json(const struct request *request, const char *name, int depth_max,
                               json_t **ret_value);

// Sets the argument `name` as if it had been sent, replacing an existing one: to `text`, which must
// stay valid until the request ends, or to the value of argument `other`, which must exist.
NODISCARD int request_arg_set(struct request *request, const char *name, const char *text);
// Likewise, to a copy of `text`. The copy alone; NULL: out of memory.
NODISCARD int request_arg_set_copy(struct request *request, const char *name, const char *text);
char *request_copy(struct request *request, const char *text);
NODISCARD int request_arg_copy(struct request *request, const char *name, const char *other);

// Calls fn(arg, name, text) once per argument, except for `token` (api.test echoes them).
typedef void request_arg_fn(void *arg, const char *name, const char *text);
void request_args_each(const struct request *request, request_arg_fn *fn, void *arg);

// Marks the reply as containing a secret (a token, a ticket). It is then never compressed: its
// length would reveal whether the secret matches text chosen by the caller.
void request_set_secret(struct request *request);

// Writes the reply as one JSON object. request_reply_open() writes {"ok":true and returns a writer
// for more members; request_reply_close() writes } and sends the reply.
struct json_writer *request_reply_open(struct request *request);
void request_reply_close(struct request *request);

// Like request_reply_open(), but writes {"ok":false,"error":code with a code that the caller chose
// (api.test).
struct json_writer *request_reply_open_failed(struct request *request, const char *code);

// Replies {"ok":true, …members of `json`}. `json` is the text of a JSON object.
void request_reply_object(struct request *request, const char *json, size_t length);

// Replies {"ok":false,"error":code}. request_reply_error_message() adds response_metadata.messages
// ["[ERROR] …"].
void request_reply_error(struct request *request, int r);
void request_reply_error_message(struct request *request, int r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// The same, with more members ("\"needed\":\"chat:write\"") after the error.
void request_reply_error_members(struct request *request, int r, const char *members);
// Replies with the error ratelimited: HTTP 429 in both error modes, with `seconds` as Retry-After.
void request_reply_ratelimited(struct request *request, int64_t seconds);
