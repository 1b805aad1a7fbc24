// SPDX-License-Identifier: Apache-2.0
// The first step of connecting, in a thread of its own: it looks up the server's name, which blocks
// for as long as a name server likes.
#pragma once

#include "base/loop.h"

#include "postgres_internal.h"

struct starter;

// Gets the connection under way (owned; NULL without memory), on the loop's thread.
typedef void starter_fn(void *arg, PGconn *conn);

// Starts one connection to where `keywords` (which must outlive it) say. Freed by starter_free(),
// earliest in `fn`.
NODISCARD int starter_new(struct loop *loop, const struct postgres_keywords *keywords,
                          starter_fn *fn, void *arg, struct starter **ret_starter);

// Waits for the thread. A connection that was not handed over yet is closed. Takes NULL.
void starter_free(struct starter *starter);
