// SPDX-License-Identifier: Apache-2.0
// Serialises changes: of those with the same key, one is in flight at a time. A change that finds a
// row locked is retried on STORE_ASIDE (or on STORE_MANY, if it came from there) while the others
// with its key wait behind it. So a long-held lock delays only changes of the same key.
#pragma once

#include "store/store.h"

struct turns;

// Like store_call().
typedef void turns_call_fn(struct store *store, enum store_lane lane,
                           const struct statement *statement, struct params *params, store_fn *fn,
                           void *arg);

// Makes changes by `call`. They fail with -ERROR_BUSY if they could not be made within
// `wait_max_ms`.
NODISCARD int turns_new(struct loop *loop, struct store *store, turns_call_fn *call,
                        int64_t wait_max_ms, struct turns **ret_turns);

// See store_change() and store_change_many(). `lane` is STORE_WRITE or STORE_MANY. Takes over
// `params`.
void turns_change(struct turns *turns, enum store_lane lane, const char *key,
                  const struct statement *statement, struct params *params, store_fn *fn,
                  void *arg);

// Fails waiting and future changes with -ERROR_UNAVAILABLE.
void turns_close(struct turns *turns);
void turns_free(struct turns *turns); // only when all sent changes have been answered; accepts NULL
