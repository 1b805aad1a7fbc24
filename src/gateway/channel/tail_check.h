// SPDX-License-Identifier: Apache-2.0
// Compares channels' heads with what was sent, to notice missing events.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>

struct gateway;
struct feed;

NODISCARD int tail_check_new(struct gateway *gateway); // compares from now on
void tail_check_free(struct gateway *gateway);         // does nothing if there are none
void tail_check_all(struct gateway *gateway);          // compares all feeds with Postgres, now
void tail_check_unconfirmed(struct gateway *gateway);  // compares those of feeds that are new
// Whether a round that compares all feeds with Postgres is under way.
bool tail_check_is_running(const struct gateway *gateway);
void tail_check_forget(struct feed *feed); // the feed is about to be freed
