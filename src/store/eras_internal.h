// SPDX-License-Identifier: Apache-2.0
// The database's eras, as eras_begin() in sql/02_events.sql returns them.
#pragma once

#include "store/statement.h"
#include "store/store.h"

struct eras {
    struct era *items; // oldest first
    int count;
};

extern const struct statement eras_statement;

void eras_done(struct eras *eras);

// Stores the result of eras_statement.
void eras_take(struct eras *eras, const struct result *result);

struct era eras_last(const struct eras *eras); // all 0: unknown

// See store_era_holds().
bool eras_hold(const struct eras *eras, int64_t number, int64_t xid);
