// SPDX-License-Identifier: Apache-2.0
// What both bench programs need: to stop with a message, memory, time and arguments.
#ifndef TIDINGS_BENCH_TOOL_H
#define TIDINGS_BENCH_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOOL_NS_PER_S 1000000000ull
#define TOOL_NS_PER_MS 1000000ull

// Prints the message to stderr and exits 1: a measurement that went wrong has no result.
_Noreturn void tool_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Zeroed memory; never NULL. The caller frees it.
void *tool_alloc(size_t count, size_t size);

// As realloc; never NULL.
void *tool_grow(void *memory, size_t size);

// Monotonic nanoseconds.
uint64_t tool_now_ns(void);

// The arguments after the subcommand, as `--name value` pairs. Values are borrowed from argv.
struct tool_args {
    int count;
    char **values;
};

// The value of --name, or `fallback` where it is not given.
const char *tool_args_text(const struct tool_args *args, const char *name, const char *fallback);

// As tool_args_text, for numbers; dies where the value is not a number of [min, max].
unsigned tool_args_number(const struct tool_args *args, const char *name, unsigned fallback,
                          unsigned min, unsigned max);

// Dies unless every argument is one of the space-separated `known`.
void tool_args_check(const struct tool_args *args, const char *known);

#endif
