// SPDX-License-Identifier: Apache-2.0
// Attributes that clean up local variables, and the way to pass ownership of such a local on.
#pragma once

#include <stdlib.h>

// Declares that `fn` runs on the address of the local when it leaves scope: `CLEANUP(buffer_done)
// struct buffer b`.
#define CLEANUP(fn) __attribute__((cleanup(fn)))

// Frees the heap pointer held by a local when it leaves scope: `CLEANUP_FREE char *text =
// strdup(…)`.
#define CLEANUP_FREE CLEANUP(cleanup_free)

// Evaluates to the pointer `p` and sets `p` to NULL: marks the line where ownership passes on.
#define TAKE(p)                                                                                    \
    __extension__({                                                                                \
        __auto_type taken_ = (p);                                                                  \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })

// A caller that ignores the result of a fallible function does not compile.
#define NODISCARD __attribute__((warn_unused_result))

static inline void cleanup_free(void *pointer)
{
    void **holder = pointer;
    free(*holder);
}
