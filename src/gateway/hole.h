// SPDX-License-Identifier: Apache-2.0
// Fetches missing events from Postgres, or tells them as a gap.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct gateway;
struct stream;

NODISCARD int holes_new(struct gateway *gateway);
void holes_free(struct gateway *gateway); // does nothing if there are none
// Events of the stream are missing, which may be known already.
void hole_begin(struct stream *stream);
bool hole_is_beyond_bound(const struct stream *stream, int64_t seq); // if `seq` were the head
void hole_on_timer(void *gateway);                                   // looks at all holes
