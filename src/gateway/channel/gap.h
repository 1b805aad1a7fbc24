// SPDX-License-Identifier: Apache-2.0
// Reads missing events from Postgres, or skips them.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct feed;
struct gateway;

NODISCARD int gaps_new(struct gateway *gateway);
void gaps_free(struct gateway *gateway); // may be called without gaps_new()
// The feed misses events. May be called again for the same gap.
void gap_begin(struct feed *feed);
// Whether the gap would be skipped if `seq` were the head.
bool gap_is_beyond_bound(const struct feed *feed, int64_t seq);
void gap_on_timer(void *gateway); // checks all gaps
