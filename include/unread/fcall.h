// SPDX-License-Identifier: Apache-2.0
// A call of one of the Redis functions in lua/, as an argument vector that a loop or a
// pipeline sends.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { FCALL_TEXTS_MAX = 1400, FCALL_BYTES_MAX = 96 * 1024 };

// For a local call: it is not zeroed, as locals are otherwise (-ftrivial-auto-var-init), since that
// would take longer than all the rest. fcall_begin() sets what counts.
#define UNZEROED __attribute__((uninitialized))

// A plain value; everything given is copied. Callers keep within these bounds (asserted).
struct fcall {
    int count;
    int keys;
    size_t used;
    const char *texts[FCALL_TEXTS_MAX];
    char bytes[FCALL_BYTES_MAX];
};

void fcall_begin(struct fcall *call, const char *function);
void fcall_key(struct fcall *call, const char *key); // all keys before the first argument
void fcall_text(struct fcall *call, const char *text);
void fcall_int(struct fcall *call, int64_t number);
void fcall_end(struct fcall *call); // then count and texts are what is to be sent
