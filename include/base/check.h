// SPDX-License-Identifier: Apache-2.0
// Assertions and checked casts, on in every build: a caller's mistake ends the process, with a line
// in the log, before it corrupts anything. What peers, disks and other services may do is no such
// mistake: it is an error to return. Any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Ends the process unless `condition`, which is evaluated once, is true.
#define ASSERT(condition)                                                                          \
    (__builtin_expect(!(condition), 0) ? check_fail(__FILE_NAME__, __LINE__, #condition) : (void)0)

// A struct that is handed on as `void *` has a member `uint32_t tag`, which is TAG(name of the
// struct) from when it is made until TAGGED_FREE().
#define TAG(name)                                                                                  \
    (TAG_OF_4_(name, 0) * 0x9E3779B1u ^ TAG_OF_4_(name, 4) * 0x85EBCA77u ^                         \
     TAG_OF_4_(name, 8) * 0xC2B2AE3Du ^ TAG_OF_4_(name, 12) * 0x27D4EB2Fu ^                        \
     (uint32_t)sizeof #name)
#define TAG_OF_4_(name, at)                                                                        \
    (TAG_CHAR_(name, at) | TAG_CHAR_(name, (at) + 1) << 8 | TAG_CHAR_(name, (at) + 2) << 16 |      \
     TAG_CHAR_(name, (at) + 3) << 24)
#define TAG_CHAR_(name, at) ((uint32_t)(unsigned char)(#name)[(at) < sizeof #name ? (at) : 0])

// `object` as a struct `name *`. Ends the process unless it is one.
#define CAST(name, object)                                                                         \
    ((struct name *)check_tag((object), offsetof(struct name, tag), TAG(name), __FILE_NAME__,      \
                              __LINE__, "struct " #name))

// A zeroed struct `name` with its tag; NULL without memory. TAGGED_FREE() frees it.
#define TAGGED_NEW(name)                                                                           \
    ((struct name *)tagged_new(sizeof(struct name), offsetof(struct name, tag), TAG(name)))

// Frees an object that has a tag; whoever uses it afterwards by CAST() is found out. Takes NULL.
#define TAGGED_FREE(object)                                                                        \
    do {                                                                                           \
        if (object)                                                                                \
            tag_clear(&(object)->tag);                                                             \
        free(object);                                                                              \
    } while (0)

_Noreturn void check_fail(const char *file, int line, const char *what)
    __attribute__((cold, noinline));

static inline void *check_tag(void *object, size_t tag_at, uint32_t tag, const char *file, int line,
                              const char *what)
{
    uint32_t found = 0;

    if (object)
        memcpy(&found, (const char *)object + tag_at, sizeof found);
    if (__builtin_expect(found != tag, 0))
        check_fail(file, line, what);
    return object;
}

static inline void *tagged_new(size_t size, size_t tag_at, uint32_t tag)
{
    char *object = (char *)calloc(1, size);

    if (object)
        memcpy(object + tag_at, &tag, sizeof tag);
    return object;
}

// A store that the compiler keeps although the memory is freed next.
static inline void tag_clear(uint32_t *tag)
{
    *(volatile uint32_t *)tag = 0;
}
