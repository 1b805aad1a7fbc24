// SPDX-License-Identifier: Apache-2.0
// A call of one of the Redis functions in lua/, as an argument vector that a loop or a
// pipeline sends.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { CALL_TEXTS_MAX = 1400, CALL_BYTES_MAX = 96 * 1024 };

// For a local call: it is not zeroed, as locals are otherwise (-ftrivial-auto-var-init), since that
// would take longer than all the rest. call_begin() sets what counts.
#define UNZEROED __attribute__((uninitialized))

// A plain value; everything given is copied. Callers keep within these bounds (asserted).
struct call {
    int count;
    int keys;
    size_t used;
    const char *texts[CALL_TEXTS_MAX];
    char bytes[CALL_BYTES_MAX];
};

void call_begin(struct call *call, const char *function);
void call_key(struct call *call, const char *key); // all keys before the first argument
void call_text(struct call *call, const char *text);
void call_int(struct call *call, int64_t number);
void call_end(struct call *call); // then count and texts are what is to be sent
