// SPDX-License-Identifier: Apache-2.0
// Stores the folded form of names that have none: those from before there was one, and those that
// instances of the previous release give. Postgres cannot fold them.
#pragma once

#include "base/id.h"
#include "store/session.h"

// A channel or user whose name looks like another one's.
struct folding_pair {
    const char *table; // "channels" or "users"
    const char *id;
    const char *like_id;
    bool is_new; // not found before
};
typedef void folding_pair_fn(void *arg, const struct folding_pair *pair);

// How far the names have been gone through. All-zero: from the start.
struct folding {
    int table;
    char after[ID_SIZE];
};

// Folds the next names, some hundred, and calls `fn` for each pair among them. 1: there are more;
// 0: this was the end, and the next call begins again. Errors as in session_call().
NODISCARD int folding_step(struct folding *folding, struct session *session, folding_pair_fn *fn,
                           void *arg);
