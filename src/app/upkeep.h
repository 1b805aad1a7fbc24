// SPDX-License-Identifier: Apache-2.0
// What is kept no longer goes: months of messages, and rows of other tables. In pieces, each a
// short transaction; of all instances one works at a time. Whoever calls goes on where the work
// was, whoever did it. Not thread safe.
#pragma once

#include "base/cleanup.h"
#include "store/session.h"

#include <stdbool.h>
#include <stdint.h>

struct upkeep;

struct upkeep_options {
    struct session *session; // borrowed, not yet connected
    int64_t retention_days;
    int64_t key_days;
    // Waits until clock_monotonic_ms() reaches `until_ms`; false when it is time to stop.
    bool (*wait)(void *arg, int64_t until_ms);
    void *arg;
};

NODISCARD int upkeep_new(const struct upkeep_options *options, struct upkeep **ret_upkeep);
void upkeep_free(struct upkeep *upkeep); // takes NULL

// What a call came to, unless it failed.
enum upkeep_outcome {
    UPKEEP_DONE,     // nothing is left to do
    UPKEEP_GOES_ON,  // some seconds have passed: call again, after what else is due
    UPKEEP_ELSEWHERE // another instance is at it
};

// Messages of months that have ended `retention_days` ago, with all that belongs to them. With
// `begins` false only a month that is under way. An outcome, or as session_call(): -ERROR_BUSY when
// somebody holds what it needs, as pg_dump does.
NODISCARD int upkeep_months(struct upkeep *upkeep, bool begins);

// Keys of posts older than `key_days`, tickets, and the like. As above.
NODISCARD int upkeep_rows(struct upkeep *upkeep);
