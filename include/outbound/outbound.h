// SPDX-License-Identifier: Apache-2.0
// Sends HTTP requests to servers that users and apps named, and so may be hostile: a thread and its
// connections. Connects to public addresses only, unless a request allows others; follows no
// redirect, uses no proxy, and bounds what it reads and how long it waits. Each of its users has a
// sender of its own, so that none delays another.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct outbound;

enum {
    OUTBOUND_HEADER_MAX = 16384,      // bytes of a header of a request
    OUTBOUND_HEADERS_MAX = 65536,     // bytes of all of them
    OUTBOUND_ANSWER_HEAD_MAX = 65536, // bytes of an answer's head; longer ones are cut
};

struct outbound_options {
    int64_t requests_max; // held at once; more are refused
    int64_t bytes_max;    // of them: URLs, headers and bodies; likewise
    // Called on the thread before it waits, each time: for users who keep state there. Returns how
    // long to wait at most, in ms. May send requests. NULL: nothing to do.
    int64_t (*on_turn)(void *arg);
    void *arg;
};

// A request. Fill it in, send it, and free it with outbound_request_done(). Initialise it with
// OUTBOUND_REQUEST().
struct outbound_request {
    const char *method;    // like all strings here, only read until outbound_send() returns
    const char *url;       // http or https
    const char *ca_file;   // CA certificates (PEM); NULL or "": the system's
    struct buffer headers; // by outbound_header()
    struct buffer body;
    size_t answer_max;  // bytes of the answer's body that are kept
    int64_t timeout_ms; // for the whole request
    bool private_allowed;
};

#define OUTBOUND_REQUEST(body_max)                                                                 \
    {.headers = BUFFER(OUTBOUND_HEADERS_MAX), .body = BUFFER(body_max)}

// Adds a header, "name: value". One that is too long, or would be more than one, makes
// outbound_send() fail.
void outbound_header(struct outbound_request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void outbound_request_done(struct outbound_request *request);

enum outbound_failure {
    OUTBOUND_ANSWERED, // none: there is a status
    OUTBOUND_TIMEOUT,
    OUTBOUND_UNREACHABLE, // no such name, or nobody listens
    OUTBOUND_PRIVATE,     // the address is private
    OUTBOUND_TLS,         // no trusted, encrypted connection
    OUTBOUND_STOPPED,     // by outbound_stop()
    OUTBOUND_OTHER,
};

// What became of a request. Valid during the call only.
struct outbound_answer {
    enum outbound_failure failure;
    const char *error; // with a failure, what happened, in words
    int status;        // HTTP status; 0 with a failure
    const char *body;  // its first bytes; not NUL-terminated
    size_t length;
    bool is_cut;           // there were more
    int64_t retry_after_s; // from the header; negative: none
    void *easy;            // for outbound_answer_header()
};

// The value of a header of the answer; NULL: none. Valid until the next call.
const char *outbound_answer_header(const struct outbound_answer *answer, const char *name);

// Called on the thread, once for each request; must not block if others send by the same sender.
typedef void outbound_fn(void *arg, const struct outbound_answer *answer);

// Starts the thread, and returns the sender before on_turn is called. Call before starting any
// other thread that uses libcurl. -ERROR_MEMORY.
NODISCARD int outbound_start(const struct outbound_options *options,
                             struct outbound **ret_outbound);

// Sends a request, and takes its body. On success, `fn` gets the answer. Any thread, until
// outbound_free(). -ERROR_BUSY: too much is held, which is counted. -ERROR_UNAVAILABLE: stopping.
// -ERROR_MEMORY: or a part of the request is too long.
NODISCARD int outbound_send(struct outbound *outbound, struct outbound_request *request,
                            outbound_fn *fn, void *arg);

// Lets on_turn be called soon. Any thread, until outbound_free().
void outbound_wake(struct outbound *outbound);

// Ends the thread. All requests still held have been answered before it returns. NULL is allowed.
void outbound_stop(struct outbound *outbound);
// Call after outbound_stop(). NULL is allowed.
void outbound_free(struct outbound *outbound);

// "https://push.example:8443" of a URL. -ERROR_INVALID_ARGUMENTS: there is none, or it is too long.
// -ERROR_MEMORY. Any thread.
NODISCARD int outbound_origin_of(const char *url, char *ret_origin, size_t size);
