// SPDX-License-Identifier: Apache-2.0
// Calls whose body, or reply, is a file: its bytes pass by the loop, on a thread of transfers.
#pragma once

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

struct request;
struct storage; // see files/storage.h

// Where the bytes of an uploaded file go. Called on the thread of transfers.
struct body_sink {
    int (*write)(struct body_sink *sink, const char *data, size_t size);
    // The last call: all is written, or nothing more will come (r negative).
    int (*end)(struct body_sink *sink, int r);
};

// Called once on the loop, on a later turn. r: 0, what the sink returned, or why the body is not
// all there: -ERROR_INVALID_FORM_DATA, -ERROR_UNAVAILABLE (the peer is slow or gone).
typedef void request_streamed_fn(void *arg, int r);

// Reads the body of a call made for streaming into `sink`, which must be valid until `fn` is
// called. -ERROR_BUSY: too many transfers, in total or of the request's actor; nothing is called.
NODISCARD int request_stream(struct request *request, struct body_sink *sink,
                             request_streamed_fn *fn, void *arg);

// A file to reply with. Strings must be valid until the request ends.
struct reply_file {
    // Returns a descriptor. Called on the thread of transfers.
    int (*open)(const struct storage *storage, const char *object);
    const struct storage *storage;
    const char *object; // NULL: no file
    int64_t size;
    const char *type;        // Content-Type
    const char *disposition; // Content-Disposition
};

// Replies with a file, or the range of it that was asked for. The handler must not use the request
// afterwards.
void request_reply_file(struct request *request, const struct reply_file *file);
