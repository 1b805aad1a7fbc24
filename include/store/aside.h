// SPDX-License-Identifier: Apache-2.0
// Work that waits for a row which somebody else has locked, by a key that names the row. Of what
// has one key only the first is tried, with growing pauses, and the rest waits behind it in order:
// so nobody but those who want the row waits for it. On the loop's thread.
#pragma once

#include "base/list.h"
#include "base/loop.h"

enum { ASIDE_KEY_SIZE = 48 };

struct aside;

// Tries `item`, which is in no list now. Must lead to aside_again(), aside_next() or aside_done().
typedef void aside_try_fn(void *arg, const char *key, struct list *item);
// Takes back an item that waited behind one that is done.
typedef void aside_return_fn(void *arg, struct list *item);

NODISCARD int aside_new(struct loop *loop, aside_try_fn *try, aside_return_fn *back, void *arg,
                        struct aside **ret_aside);
void aside_free(struct aside *aside); // what still waits is its owner's to answer: returned before

bool aside_is_empty(const struct aside *aside);

// Whether something waits, or is being tried, under the key.
bool aside_holds(const struct aside *aside, const char *key);

// Puts an item behind what waits under the key. The first one begins with a pause. Keys longer than
// ASIDE_KEY_SIZE - 1 bytes are cut off.
void aside_add(struct aside *aside, const char *key, struct list *item);

// Takes the key for an item that its owner tries already: what is added waits behind that.
void aside_begin(struct aside *aside, const char *key);

// What became of the one that was tried: it found the row locked again, and is the first again; it
// was answered, and the next one is to be tried, also if that comes some seconds later; it is
// through, and all others are returned.
void aside_again(struct aside *aside, const char *key, struct list *item);
void aside_next(struct aside *aside, const char *key);
void aside_done(struct aside *aside, const char *key);

// How many items wait, without those being tried.
int aside_waiting(const struct aside *aside);
