// SPDX-License-Identifier: Apache-2.0
// Compares channels' heads with what was sent, to notice missing events.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>

struct gateway;
struct stream;

NODISCARD int heads_new(struct gateway *gateway); // compares from now on
void heads_free(struct gateway *gateway);         // does nothing if there are none
void heads_check_store(struct gateway *gateway);  // compares all streams with Postgres, now
void heads_young(struct gateway *gateway);        // compares those of streams that are new
// Whether a round that compares all streams with Postgres is under way.
bool heads_are_read(const struct gateway *gateway);
void heads_forget(struct stream *stream); // the stream is about to be freed
