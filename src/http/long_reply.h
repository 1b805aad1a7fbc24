// SPDX-License-Identifier: Apache-2.0
// The text of a long reply. It is sent in pieces, and freed on a thread of the server: to copy or
// to unmap tens of megabytes takes milliseconds, and the loop serves others meanwhile.
#pragma once

#include "server_internal.h"

#include "base/buffer.h"

#include <sys/types.h>

enum { LONG_REPLY_PIECE_BYTES = 1 << 18 }; // sent in a turn

struct long_reply;

// On the loop. Takes the text of `reply`, which is empty afterwards. NULL, and `reply` keeps its
// text, if that is short or there is no memory or no thread: the caller then frees it as usual.
struct long_reply *long_reply_take(struct server *server, struct buffer *reply);
// On the loop. Frees a struct long_reply and its text, on the thread while there is one. Accepts
// NULL. A MHD_ContentReaderFreeCallback.
void long_reply_free(void *arg);
// Copies at most `size` bytes from `position` on. Returns their number. A
// MHD_ContentReaderCallback.
ssize_t long_reply_read(void *arg, uint64_t position, char *ret_data, size_t size);
