// SPDX-License-Identifier: Apache-2.0
// Fetches missing events from Postgres, or tells them as a gap.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct gateway;
struct feed;

NODISCARD int gaps_new(struct gateway *gateway);
void gaps_free(struct gateway *gateway); // does nothing if there are none
// Events of the feed are missing, which may be known already.
void gap_begin(struct feed *feed);
bool gap_is_beyond_bound(const struct feed *feed, int64_t seq); // if `seq` were the head
void gap_on_timer(void *gateway);                               // looks at all gaps
