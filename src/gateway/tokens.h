// SPDX-License-Identifier: Apache-2.0
// Closes connections whose token is no longer valid: when told that it, its user or its app
// changed, or, for what was not heard, by asking for all tokens now and then.
#pragma once

#include "base/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection;
struct gateway;
struct loop_timer;
struct token_doubt;

struct tokens {
    unsigned part; // which part of all tokens is checked next
    int hurried;   // how many parts are still to be checked soon
    struct loop_timer *timer;
    struct token_doubt *doubts; // whom to ask about, at doubt_timer
    struct loop_timer *doubt_timer;
    int64_t told_ms; // when something was last doubted, 0: never
};

void tokens_on_timer(void *gateway);
void tokens_on_doubt_timer(void *gateway);
// A message of the sessions' topic.
void tokens_hear(struct gateway *gateway, const char *data, size_t length);
// Something may not have been heard: all tokens are checked soon.
void tokens_hurry(struct gateway *gateway);
// The connection is open from now on.
void tokens_on_open(struct connection *c);
// The connection's token is no good any more.
void token_end(struct connection *c);
void tokens_end(struct gateway *gateway);
