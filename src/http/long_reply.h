// SPDX-License-Identifier: Apache-2.0
// Long replies are freed on a thread of the server: to unmap tens of megabytes takes milliseconds,
// and the loop serves others meanwhile.
#pragma once

#include "server_internal.h"

#include "base/buffer.h"

// On the loop. Frees the text of `reply`, on the thread if it is long.
void long_reply_free(struct server *server, struct buffer *reply);
