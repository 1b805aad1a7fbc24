// SPDX-License-Identifier: Apache-2.0
// The lives of the database, as eras_begin() of sql/02_events.sql tells them.
#pragma once

#include "store/statement.h"
#include "store/store.h"

struct eras {
    struct era *items; // the newest last
    int count;
};

extern const struct statement eras_statement;

void eras_done(struct eras *eras);

// Takes the answer to eras_statement.
void eras_take(struct eras *eras, const struct result *result);

struct era eras_last(const struct eras *eras); // all 0: none is known

// See store_era_holds().
bool eras_hold(const struct eras *eras, int64_t number, int64_t xid);
