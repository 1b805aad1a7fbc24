// SPDX-License-Identifier: Apache-2.0
// Changes of one thing take turns: of those with one key, one is on its way at a time. One that
// finds a row locked is tried again on the lane STORE_ASIDE (or STORE_MANY, where it was), while
// the others with its key wait behind it. So a row that is held for long keeps those waiting who
// want it, and nobody else.
#pragma once

#include "store/store.h"

struct turns;

// Changes are answered with -ERROR_BUSY when they could not be made within `wait_max_ms`.
NODISCARD int turns_new(struct loop *loop, struct store *store, int64_t wait_max_ms,
                        struct turns **ret_turns);

// See store_change() and store_change_many(): `lane` is STORE_WRITE or STORE_MANY. Takes over
// `params`.
void turns_change(struct turns *turns, enum store_lane lane, const char *key,
                  const struct statement *statement, struct params *params, store_fn *fn,
                  void *arg);

// Answers what waits for its turn with -ERROR_UNAVAILABLE, as all that comes from now on.
void turns_close(struct turns *turns);
void turns_free(struct turns *turns); // after all that was sent is answered; takes NULL
