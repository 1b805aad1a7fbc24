// SPDX-License-Identifier: Apache-2.0
// What leans on how libmicrohttpd 0.9.75 works inside. All on the loop's thread.
#pragma once

#include "arena.h"
#include "base/cleanup.h"

#include <microhttpd.h>

struct connection;

// A copy of the whole head of a request as it came, which begins at `verb` in libmicrohttpd's
// memory. `target` is as the callback for the request line had it. Only in the first call of the
// access handler for the request. NULL without memory.
char *mhd_head_copy(struct MHD_Connection *mhd, const char *verb, const char *target,
                    struct arena *arena, size_t *ret_length);
// How many header fields libmicrohttpd has seen.
int mhd_fields_count(struct MHD_Connection *mhd);

// Gets the descriptor `fd` of a connection, which is the callee's, and the `length` bytes that
// libmicrohttpd had read behind the head.
typedef void mhd_taken_fn(void *arg, int fd, const char *rest, size_t length);

// Under way from libmicrohttpd to `fn`.
struct mhd_takeover {
    int fd;
    int pipe; // the peer of what libmicrohttpd was left with
    mhd_taken_fn *fn;
    void *arg;
};

void mhd_takeover_init(struct mhd_takeover *takeover);
// Closes what was not given away.
void mhd_takeover_done(struct mhd_takeover *takeover);
// Takes a connection away from libmicrohttpd with all that came behind the head at hand: calls
// fn(arg, …) in a later run, unless the server ends before. `takeover` must live until
// exchange_end() is called. Only in the first call of the access handler. -ERROR_BUSY without
// descriptors: the connection ends then. -ERROR_MEMORY.
NODISCARD int mhd_takeover_start(struct mhd_takeover *takeover, struct connection *connection,
                                 mhd_taken_fn *fn, void *arg);
