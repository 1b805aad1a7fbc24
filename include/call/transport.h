// SPDX-License-Identifier: Apache-2.0
// The inside of a request, for those who create requests: exchange.c for HTTP, internal_request.c
// for the rest.
#pragma once

#include "base/id.h"
#include "call/arena.h"
#include "call/intake.h"
#include "call/request.h"
#include "call/request_arguments.h"
#include "call/streaming.h"

// Called when the reply is complete, in `reply`, `status` and `error`. Sends it. The request may be
// gone afterwards.
typedef void request_send_fn(struct request *request);

// Parses the arguments and calls request->read_fn, at once or later.
typedef void request_load_fn(struct request *request);

// See request_stream().
typedef int request_stream_fn(struct request *request, struct body_sink *sink,
                              request_streamed_fn *fn, void *arg);

// Called when the owner of a waiting body is known.
typedef void request_own_fn(struct request *request);

struct request {
    const char *verb;   // "GET"; NULL for calls not by HTTP
    const char *method; // never NULL; nor are the next four
    const char *id;
    const char *token;
    const char *idempotency_key;
    const char *host;
    const char *known;   // static name for metrics
    const char *scope;   // the scope the method requires, or NULL
    const char *granted; // the scopes of the caller's token; NULL: not known
    char origin[24];     // the socket that received it
    struct actor actor;
    struct arena arena;
    struct arguments arguments;

    bool http_errors; // the caller asked for HTTP statuses
    bool is_secret;   // see request_set_secret()
    bool is_webhook;  // an incoming webhook: answered with a plain word (webhook_reply.h)
    bool replied;
    int status;
    const char *error;    // error code; "" on success
    const char *message;  // of the error, valid while `send` runs; NULL: none
    char retry_after[12]; // seconds; "": no header
    struct buffer reply;
    struct json_writer writer;
    int64_t reply_max_bytes;
    int64_t started_us;
    request_send_fn *send;
    request_load_fn *load;     // NULL: the arguments are already parsed
    request_stream_fn *stream; // NULL: there is no body to read
    struct reply_file file;    // see request_reply_file()
    request_own_fn *admit;     // NULL: nothing waits for admission
    request_read_fn *read_fn;
    void *read_arg;
    char owner[ID_SIZE]; // the user charged for the body; "": unauthenticated
    int64_t body_bytes;
    struct intake *intake; // NULL: not accounted
    int64_t held_bytes;    // charged there
    struct intake *outgo;  // likewise, for the reply
    int64_t reply_bytes;
};

// Initialises an empty request: all strings are "", nothing is allocated.
void request_init(struct request *request, int64_t reply_max_bytes, request_send_fn *send);
void request_done(struct request *request);

// The reply is complete: accounts for it, and sends it.
void request_reply_done(struct request *request);

// Charges `bytes` more of the body to its owner, like intake_take().
NODISCARD int request_hold(struct request *request, int64_t bytes);
void request_release(struct request *request);
// Charges the reply, if it is large, until the request ends.
NODISCARD int request_hold_reply(struct request *request);

// Writes an error body outside of any method: {"ok":false,"error":code}.
void request_write_plain_error(struct request *request, int status, const char *code,
                               const char *message);
