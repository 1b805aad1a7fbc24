// SPDX-License-Identifier: Apache-2.0
// Deletes expired data: months of messages, and rows of other tables. Works in short transactions;
// only one instance at a time. A call continues where the work stopped, whichever instance did it.
// Not thread-safe.
#pragma once

#include "base/cleanup.h"
#include "store/session.h"

#include <stdbool.h>
#include <stdint.h>

struct upkeep;

struct upkeep_options {
    struct session *session; // borrowed, not connected yet
    int64_t retention_days;
    int64_t key_days;
    // Waits until clock_monotonic_ms() reaches `until_ms`. False: time to stop.
    bool (*wait)(void *arg, int64_t until_ms);
    void *arg;
};

NODISCARD int upkeep_new(const struct upkeep_options *options, struct upkeep **ret_upkeep);
void upkeep_free(struct upkeep *upkeep); // NULL is allowed

// The outcome of a call that did not fail.
enum upkeep_outcome {
    UPKEEP_DONE,       // nothing left to do
    UPKEEP_UNFINISHED, // some seconds have passed: run other work that is due, then call again
    UPKEEP_ELSEWHERE   // another instance is working
};

// Deletes messages of months that ended `retention_days` ago, with everything that belongs to them.
// `begins` false: only continues a month already begun. Returns an outcome, or an error of
// session_call(): -ERROR_BUSY if another session holds a lock, such as pg_dump.
NODISCARD int upkeep_months(struct upkeep *upkeep, bool begins);

// Deletes keys of posts older than `key_days`, tickets, and the like. Likewise.
NODISCARD int upkeep_rows(struct upkeep *upkeep);
