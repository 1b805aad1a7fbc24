// SPDX-License-Identifier: Apache-2.0
// A call of a Redis function in lua/, as an argument vector for a loop's cache or a pipeline.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { FCALL_TEXTS_MAX = 1400, FCALL_BYTES_MAX = 96 * 1024 };

// For local variables of type struct fcall: skips the zeroing of locals (-ftrivial-auto-var-init),
// which would cost more than everything else here. fcall_begin() initialises the members that
// matter.
#define UNZEROED __attribute__((uninitialized))

// A plain value; all arguments are copied. Callers stay within the bounds above (asserted).
struct fcall {
    int count;
    int keys;
    size_t used;
    const char *texts[FCALL_TEXTS_MAX];
    char bytes[FCALL_BYTES_MAX];
};

void fcall_begin(struct fcall *call, const char *function);
void fcall_key(struct fcall *call, const char *key); // all keys precede the first argument
void fcall_text(struct fcall *call, const char *text);
void fcall_int(struct fcall *call, int64_t number);
void fcall_end(struct fcall *call); // afterwards `count` and `texts` are ready to be sent
