// SPDX-License-Identifier: Apache-2.0
// Compares channels' heads with what was sent, to find missing last events.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>

struct feed;
struct gateway;

NODISCARD int tail_check_new(struct gateway *gateway); // starts the rounds
void tail_check_free(struct gateway *gateway);         // may be called without tail_check_new()
void tail_check_all(struct gateway *gateway);          // compares all feeds with Postgres now
void tail_check_unconfirmed(struct gateway *gateway);  // compares new feeds with Postgres
// Whether a round that compares all feeds with Postgres is in progress.
bool tail_check_is_running(const struct gateway *gateway);
void tail_check_forget(struct feed *feed); // the feed is about to be freed
