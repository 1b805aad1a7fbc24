// SPDX-License-Identifier: Apache-2.0
// Compares channels' heads with what was sent, to notice missing events.
#pragma once

#include <stdbool.h>

struct gateway;
struct loop_timer;
struct stream;

struct heads {
    struct stream *cursor; // the next stream whose head is to be compared
    unsigned rounds;
    bool by_store; // this round compares with Postgres, not with Redis
    struct loop_timer *timer;
};

void heads_check_store(struct gateway *gateway); // compares all streams with Postgres, now
void heads_on_timer(void *gateway);
void heads_young(struct gateway *gateway); // compares those of streams that are new
// Whether a round that compares all streams with Postgres is under way.
bool heads_are_read(const struct gateway *gateway);
void heads_forget(struct stream *stream); // the stream is about to be freed
