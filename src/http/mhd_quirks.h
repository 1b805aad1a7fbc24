// SPDX-License-Identifier: Apache-2.0
// Code that depends on libmicrohttpd's internals, tested with the version MHD_TRIED. All on the
// loop's thread, except where noted. The tests of each function, in tests/unit if not noted:
//
//   mhd_check           test_mhd_quirks
//   mhd_head_copy       test_http_heads: nuls_are_refused, ambiguous_requests_are_refused,
//                       later_heads_are_refused_as_first_ones
//   mhd_fields_peek     test_http_heads: malformed_lengths_of_later_requests_are_refused
//   mhd_descriptor_take test_http_acceptor: a_used_connection_is_handed_over
//   mhd_takeover_start  test_http_calls: a_body_in_pieces_is_one_body;
//                       tests/e2e/test_front_door.py
//   mhd_resume          test_http_acceptor: requests_before_a_half_close_are_answered
//   mhd_end_is_missed   the same
//   mhd_reply_queue     test_http_heads: later_heads_are_refused_as_first_ones
#pragma once

#include "base/cleanup.h"
#include "call/arena.h"

#include <microhttpd.h>
#include <stdbool.h>

#define MHD_TRIED "0.9.75"

enum {
    // Half of it is the first read buffer. libmicrohttpd clears all of it after each request, and
    // replies 431 to a head that does not fit only if this is below 32 KiB.
    MHD_MEMORY_BYTES = 16384
};

// Whether this version of the library has been tested. -ERROR_UNAVAILABLE (logged): no.
NODISCARD int mhd_check(const char *version);

// Copies a request's complete head, as received. It begins at `verb` in libmicrohttpd's memory.
// `target` is the one passed to the request-line callback. Only in the first call of the access
// handler for the request. NULL if out of memory.
char *mhd_head_copy(struct MHD_Connection *mhd, const char *verb, const char *target,
                    struct arena *arena, size_t *ret_length);
// The number of header fields libmicrohttpd has parsed.
int mhd_fields_count(struct MHD_Connection *mhd);

// The header bytes received so far (*ret_length) of a request that is not its connection's first.
// For its request-line callback. `memory` is the `target` passed to that callback for the first
// request. NULL if the request line is malformed.
const char *mhd_fields_peek(const char *memory, const char *target, size_t *ret_length);

// Takes the descriptor `fd` from libmicrohttpd, which keeps an unconnected one and closes it at its
// next run. Bytes that libmicrohttpd has read already are lost. Only inside one of its callbacks.
// -ERROR_BUSY: no free descriptor; the connection is then shut down.
NODISCARD int mhd_descriptor_take(struct MHD_Connection *mhd, int fd, int *ret_fd);

// Queues a reply. Use this instead of MHD_queue_response(), which only libmicrohttpd itself calls,
// to answer a later head that it cannot parse with an HTML page. Its calls reach our function of
// that name, as the dynamic linker prefers the program's symbols. Ours first calls the function set
// by mhd_on_refusal(), which may take the descriptor. Any thread that runs a daemon.
enum MHD_Result mhd_reply_queue(struct MHD_Connection *mhd, unsigned status,
                                struct MHD_Response *response);
typedef void mhd_refusal_fn(struct MHD_Connection *mhd, unsigned status);
void mhd_on_refusal(mhd_refusal_fn *fn); // before any daemon starts

// mhd_resume() continues a suspended request. Call mhd_resumed() in the callback that follows.
void mhd_resume(struct MHD_Connection *mhd);
void mhd_resumed(struct MHD_Connection *mhd);

// Whether the peer of the idle connection `fd` has closed its side unnoticed: libmicrohttpd waits
// for events, and an end that arrived along with a request causes none. Check once, soon after the
// reply; a later end is an event. Do not check while libmicrohttpd has work: that may be a next
// request, which it has read before the end.
bool mhd_end_is_missed(int fd);

// Receives the connection's descriptor `fd`, which it then owns, and the `length` bytes that
// libmicrohttpd had read after the head.
typedef void mhd_taken_fn(void *arg, int fd, const char *rest, size_t length);

// A connection on its way from libmicrohttpd to `fn`.
struct mhd_takeover {
    uint32_t tag;
    int fd;
    int pipe; // the peer of the socket libmicrohttpd was left with
    mhd_taken_fn *fn;
    void *arg;
};

void mhd_takeover_init(struct mhd_takeover *takeover);
// Closes descriptors not handed over.
void mhd_takeover_done(struct mhd_takeover *takeover);
// Takes the connection `fd` from libmicrohttpd, with all bytes after the current head. Calls
// fn(arg, …) in a later run, unless the server ends first. `takeover` must live until
// mhd_handler_end(). Only in the first call of the access handler. -ERROR_BUSY: no free descriptor;
// the connection then ends. -ERROR_MEMORY.
NODISCARD int mhd_takeover_start(struct mhd_takeover *takeover, struct MHD_Connection *mhd, int fd,
                                 mhd_taken_fn *fn, void *arg);
