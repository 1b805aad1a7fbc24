// SPDX-License-Identifier: Apache-2.0
// What leans on how libmicrohttpd works inside, tried with the versions of MHD_TRIED. All on the
// loop's thread. Each has its test in tests/unit:
//
//   mhd_check           test_mhd_quirks
//   mhd_head_copy       test_http_heads: nuls_are_refused, ambiguous_requests_are_refused,
//                       later_heads_are_refused_as_first_ones
//   mhd_fields_peek     test_http_heads: malformed_lengths_of_later_requests_are_refused
//   mhd_descriptor_take test_http_acceptor: a_used_connection_is_handed_over
//   mhd_takeover        test_http_calls: a_body_in_pieces_is_one_body;
//   tests/e2e/test_front_acceptor.py mhd_resume          test_http_acceptor:
//   requests_before_a_half_close_are_answered mhd_end_is_missed   the same mhd_reply_queue
//   test_http_heads: later_heads_are_refused_as_first_ones
#pragma once

#include "arena.h"
#include "base/cleanup.h"

#include <microhttpd.h>
#include <stdbool.h>

#define MHD_TRIED "0.9.75"

enum {
    // Half of it is the first read buffer. libmicrohttpd clears all of it after every request, and
    // answers 431 to a head that does not fit only while this is below 32 KiB.
    MHD_MEMORY_BYTES = 16384
};

// Whether the library of this version was tried; the error is logged. -ERROR_UNAVAILABLE.
NODISCARD int mhd_check(const char *version);

// A copy of the whole head of a request as it came, which begins at `verb` in libmicrohttpd's
// memory. `target` is as the callback for the request line had it. Only in the first call of the
// access handler for the request. NULL without memory.
char *mhd_head_copy(struct MHD_Connection *mhd, const char *verb, const char *target,
                    struct arena *arena, size_t *ret_length);
// How many header fields libmicrohttpd has seen.
int mhd_fields_count(struct MHD_Connection *mhd);

// What has come of the fields of a request that is not its connection's first, when the callback
// for its request line is called: *ret_length bytes. `memory` is that callback's `target` of the
// first request. NULL when the request line is malformed.
const char *mhd_fields_peek(const char *memory, const char *target, size_t *ret_length);

// Takes the descriptor `fd` out of libmicrohttpd's hands, which is left with one that leads nowhere
// and closes at its next run. What libmicrohttpd has read already is lost. Only inside one of its
// callbacks. -ERROR_BUSY without descriptors: the connection is shut down then.
NODISCARD int mhd_descriptor_take(struct MHD_Connection *mhd, int fd, int *ret_fd);

// Queues a reply, as MHD_queue_response() does otherwise: that one is called by libmicrohttpd
// alone, to answer by itself, with a page of HTML, a later head that it cannot read. Its calls come
// here, since the dynamic linker prefers the function of the program. They tell the function that
// mhd_refusals_hear() gave, which may take the descriptor; any thread that runs a daemon.
enum MHD_Result mhd_reply_queue(struct MHD_Connection *mhd, unsigned status,
                                struct MHD_Response *response);
typedef void mhd_refusal_fn(struct MHD_Connection *mhd, unsigned status);
void mhd_refusals_hear(mhd_refusal_fn *fn); // before a daemon starts

// Lets libmicrohttpd go on with what was suspended; mhd_resumed() is for the callback that this
// makes.
void mhd_resume(struct MHD_Connection *mhd);
void mhd_resumed(struct MHD_Connection *mhd);

// Whether the peer of the idle connection of descriptor `fd` has ended and libmicrohttpd does not
// know: of an end that came along with a request it hears no more, since it waits for news. To be
// asked once, soon after the reply; what comes later is news. Not while libmicrohttpd has something
// to do: that may be the next request, which it has read before the end.
bool mhd_end_is_missed(int fd);

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
// Takes the connection of descriptor `fd` away from libmicrohttpd with all that came behind the
// head at hand: calls fn(arg, …) in a later run, unless the server ends before. `takeover` must
// live until exchange_end() is called. Only in the first call of the access handler. -ERROR_BUSY
// without descriptors: the connection ends then. -ERROR_MEMORY.
NODISCARD int mhd_takeover_start(struct mhd_takeover *takeover, struct MHD_Connection *mhd, int fd,
                                 mhd_taken_fn *fn, void *arg);
