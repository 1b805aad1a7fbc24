// SPDX-License-Identifier: Apache-2.0
// Files embedded at build time, sorted by name.
#pragma once

#include <stddef.h>

struct embedded_file {
    const char *name; // without directory: "001_schema.sql"
    const char *data; // NUL-terminated; `length` excludes the NUL
    size_t length;
    const char *sha256; // lower-case hex
};

// Static data: any thread, never freed. Each table ends with an all-NULL entry, which its count
// excludes.
extern const struct embedded_file embedded_migrations[];
extern const size_t embedded_migrations_count;

extern const struct embedded_file embedded_functions[]; // Postgres functions and views
extern const size_t embedded_functions_count;
extern const char embedded_functions_schema[]; // "tidings_" and the first hex digits of the SHA-256
                                               // over all of them

extern const struct embedded_file embedded_redis_functions[]; // each named after its library
extern const size_t embedded_redis_functions_count;

extern const struct embedded_file embedded_web[];
extern const size_t embedded_web_count;

extern const struct embedded_file embedded_openapi[]; // openapi.json, openapi-3.0.json
extern const size_t embedded_openapi_count;

extern const struct embedded_file embedded_reference[]; // the page at /docs
extern const size_t embedded_reference_count;
