// SPDX-License-Identifier: Apache-2.0
// Parks work whose row is locked by another transaction. A key names the row. Per key, only the
// first item is retried, with growing pauses; the others wait behind it in order. So only work for
// the same row waits. On the loop's thread.
#pragma once

#include "base/list.h"
#include "base/loop.h"

enum { ASIDE_KEY_SIZE = 48 };

struct aside;

// Tries `item`, which is in no list at this point. Must lead to aside_again(), aside_next() or
// aside_done().
typedef void aside_try_fn(void *arg, const char *key, struct list *item);
// Hands back an item whose key was released before its turn. The owner handles it.
typedef void aside_return_fn(void *arg, struct list *item);

NODISCARD int aside_new(struct loop *loop, aside_try_fn *try, aside_return_fn *back, void *arg,
                        struct aside **ret_aside);
void aside_free(struct aside *aside); // hands back all waiting items first

bool aside_is_empty(const struct aside *aside);

// Whether an item under the key waits or is being tried.
bool aside_holds(const struct aside *aside, const char *key);

// Appends an item to those of the key. The first item of a key starts with a pause. Keys are cut
// off after ASIDE_KEY_SIZE - 1 bytes.
void aside_add(struct aside *aside, const char *key, struct list *item);

// Reserves the key for an item that its owner is trying already. Items added meanwhile wait behind
// it.
void aside_begin(struct aside *aside, const char *key);

// Outcome of a try. aside_again(): the row was still locked; the item becomes the first again.
// aside_next(): the item was answered; the next item is tried, even if it arrives a few seconds
// later. aside_done(): the item is finished; all other items are handed back.
void aside_again(struct aside *aside, const char *key, struct list *item);
void aside_next(struct aside *aside, const char *key);
void aside_done(struct aside *aside, const char *key);

// The number of waiting items, without those being tried.
int aside_waiting(const struct aside *aside);
