// SPDX-License-Identifier: Apache-2.0
#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void tool_die(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    exit(1);
}

void *tool_alloc(size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);

    if (!memory)
        tool_die("out of memory");
    return memory;
}

void *tool_grow(void *memory, size_t size)
{
    void *grown = realloc(memory, size);

    if (!grown)
        tool_die("out of memory");
    return grown;
}

uint64_t tool_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * TOOL_NS_PER_S + (uint64_t)now.tv_nsec;
}

const char *tool_args_text(const struct tool_args *args, const char *name, const char *fallback)
{
    for (int i = 0; i + 1 < args->count; i += 2)
        if (strncmp(args->values[i], "--", 2) == 0 && strcmp(args->values[i] + 2, name) == 0)
            return args->values[i + 1];
    return fallback;
}

unsigned tool_args_number(const struct tool_args *args, const char *name, unsigned fallback,
                          unsigned min, unsigned max)
{
    const char *text = tool_args_text(args, name, NULL);
    unsigned long value;
    char *end;

    if (!text)
        return fallback;
    errno = 0;
    value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < min || value > max)
        tool_die("--%s must be %u to %u, not %s", name, min, max, text);
    return (unsigned)value;
}

static bool name_is_known(const char *name, const char *known)
{
    size_t len = strlen(name);

    for (const char *at = known; (at = strstr(at, name)); at += len)
        if ((at == known || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

void tool_args_check(const struct tool_args *args, const char *known)
{
    if (args->count % 2 != 0)
        tool_die("%s: an argument without its value", args->values[args->count - 1]);
    for (int i = 0; i < args->count; i += 2)
        if (strncmp(args->values[i], "--", 2) != 0 || !name_is_known(args->values[i] + 2, known))
            tool_die("%s is none of: %s", args->values[i], known);
}
