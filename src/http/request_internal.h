// SPDX-License-Identifier: Apache-2.0
// The inside of a request, for the code of http/ that makes them (exchange.c for HTTP,
// request_local.c for the rest).
#pragma once

#include "arena.h"
#include "base/id.h"
#include "http/request.h"
#include "intake.h"
#include "request_arguments.h"

// The reply is complete: `reply`, `status` and `error` say what it is. Sends it; the request may be
// gone afterwards.
typedef void request_send_fn(struct request *request);

// Reads the arguments and calls request->read_fn, sooner or later.
typedef void request_load_fn(struct request *request);

// Of a request whose body waits to come: its owner is known.
typedef void request_own_fn(struct request *request);

struct request {
    const char *verb;   // "GET", or NULL for calls that did not come by HTTP
    const char *method; // never NULL, as are the next four
    const char *id;
    const char *token;
    const char *idempotency_key;
    const char *host;
    const char *known; // static name for metrics
    const char *scope; // that the method needs, or NULL
    char origin[24];   // the socket it came by
    struct actor actor;
    struct arena arena;
    struct arguments arguments;

    bool http_errors; // the caller asked for HTTP statuses
    bool is_secret;   // see request_set_secret()
    bool replied;
    int status;
    const char *error;    // code, "" when ok
    char retry_after[12]; // seconds; "": not said
    struct buffer reply;
    struct json_writer writer;
    int64_t reply_max_bytes;
    int64_t started_us;
    request_send_fn *send;
    request_load_fn *load; // NULL: the arguments are there
    request_own_fn *admit; // NULL: nothing waits for it
    request_read_fn *read_fn;
    void *read_arg;
    char owner[ID_SIZE]; // whose bytes the body's are; "": a stranger's
    int64_t body_bytes;
    struct intake *intake; // NULL: nothing is counted
    int64_t held_bytes;    // taken there
    struct intake *outgo;  // the same for the reply
    int64_t reply_bytes;
};

// Makes `request` empty: everything is "", nothing is allocated.
void request_init(struct request *request, int64_t reply_max_bytes, request_send_fn *send);
void request_done(struct request *request);

// Counts `bytes` more of the body as those of its owner: as intake_take().
NODISCARD int request_hold(struct request *request, int64_t bytes);
void request_release(struct request *request);
// Counts the reply, if it is large, until the request ends.
NODISCARD int request_hold_reply(struct request *request);

// Writes an error's body outside of any method: {"ok":false,"error":code}.
void request_write_plain_error(struct request *request, int status, const char *code,
                               const char *message);
