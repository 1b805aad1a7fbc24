// SPDX-License-Identifier: Apache-2.0
// Assertions and checked casts, enabled in every build. A programming error ends the process, with
// a log line, before it corrupts data. Failures of peers, disks or other services are not
// programming errors: return an error for those. Any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Ends the process unless `condition` is true. Evaluates it once.
#define ASSERT(condition)                                                                          \
    (__builtin_expect(!(condition), 0) ? check_fail(__FILE_NAME__, __LINE__, #condition) : (void)0)

// Type tag of a struct that is passed as `void *`. Such a struct has a member `uint32_t tag`, set
// to TAG(struct name) from its creation until TAGGED_FREE().
#define TAG(name)                                                                                  \
    (TAG_OF_4_(name, 0) * 0x9E3779B1u ^ TAG_OF_4_(name, 4) * 0x85EBCA77u ^                         \
     TAG_OF_4_(name, 8) * 0xC2B2AE3Du ^ TAG_OF_4_(name, 12) * 0x27D4EB2Fu ^                        \
     (uint32_t)sizeof #name)
#define TAG_OF_4_(name, at)                                                                        \
    (TAG_CHAR_(name, at) | TAG_CHAR_(name, (at) + 1) << 8 | TAG_CHAR_(name, (at) + 2) << 16 |      \
     TAG_CHAR_(name, (at) + 3) << 24)
#define TAG_CHAR_(name, at) ((uint32_t)(unsigned char)(#name)[(at) < sizeof #name ? (at) : 0])

// Casts `object` to `struct name *`. Ends the process if the tag does not match.
#define CAST(name, object)                                                                         \
    ((struct name *)check_tag((object), offsetof(struct name, tag), TAG(name), __FILE_NAME__,      \
                              __LINE__, "struct " #name))

// The same for a `const void *`.
#define CAST_CONST(name, object)                                                                   \
    ((const struct name *)check_tag_const((object), offsetof(struct name, tag), TAG(name),         \
                                          __FILE_NAME__, __LINE__, "struct " #name))

// Allocates a zeroed `struct name` and sets its tag. NULL if out of memory. Free it with
// TAGGED_FREE().
#define TAGGED_NEW(name)                                                                           \
    ((struct name *)tagged_new(sizeof(struct name), offsetof(struct name, tag), TAG(name)))

// Clears the tag and frees the object, so that CAST() detects a use after free. Accepts NULL.
#define TAGGED_FREE(object)                                                                        \
    do {                                                                                           \
        if (object)                                                                                \
            tag_clear(&(object)->tag);                                                             \
        free(object);                                                                              \
    } while (0)

_Noreturn void check_fail(const char *file, int line, const char *what)
    __attribute__((cold, noinline));

static inline const void *check_tag_const(const void *object, size_t tag_at, uint32_t tag,
                                          const char *file, int line, const char *what)
{
    uint32_t found = 0;

    if (object)
        memcpy(&found, (const char *)object + tag_at, sizeof found);
    if (__builtin_expect(found != tag, 0))
        check_fail(file, line, what);
    return object;
}

static inline void *check_tag(void *object, size_t tag_at, uint32_t tag, const char *file, int line,
                              const char *what)
{
    (void)check_tag_const(object, tag_at, tag, file, line, what);
    return object;
}

static inline void *tagged_new(size_t size, size_t tag_at, uint32_t tag)
{
    char *object = (char *)calloc(1, size);

    if (object)
        memcpy(object + tag_at, &tag, sizeof tag);
    return object;
}

// Clears the tag by a volatile store, which the compiler cannot drop as dead before free().
static inline void tag_clear(uint32_t *tag)
{
    *(volatile uint32_t *)tag = 0;
}
