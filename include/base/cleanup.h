// SPDX-License-Identifier: Apache-2.0
// Attributes that release local variables at the end of their scope, and a macro that transfers
// their ownership.
#pragma once

#include <stdlib.h>

// Calls `fn` with the variable's address when it goes out of scope: `CLEANUP(buffer_done) struct
// buffer b`.
#define CLEANUP(fn) __attribute__((cleanup(fn)))

// Frees the variable's heap pointer when it goes out of scope: `CLEANUP_FREE char *text =
// strdup(…)`.
#define CLEANUP_FREE CLEANUP(cleanup_free)

// Returns the pointer `p` and sets `p` to NULL. Marks the line where ownership is transferred.
#define TAKE(p)                                                                                    \
    __extension__({                                                                                \
        __auto_type place_ = &(p);                                                                 \
        __auto_type taken_ = *place_;                                                              \
        *place_ = NULL;                                                                            \
        taken_;                                                                                    \
    })

// Ignoring the function's result is a compiler warning, and an error in our builds.
#define NODISCARD __attribute__((warn_unused_result))

static inline void cleanup_free(void *pointer)
{
    void **holder = pointer;
    free(*holder);
}
