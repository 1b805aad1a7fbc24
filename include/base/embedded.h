// SPDX-License-Identifier: Apache-2.0
// Files that were embedded when the program was built, sorted by name.
#pragma once

#include <stddef.h>

struct embedded_file {
    const char *name; // without directories: "001_schema.sql"
    const char *data; // ends with a NUL that `length` does not count
    size_t length;
    const char *sha256; // in lower-case hex
};

// Static data: any thread, never freed. After its `count` entries each table has one of NULLs.
extern const struct embedded_file embedded_migrations[];
extern const size_t embedded_migrations_count;

extern const struct embedded_file embedded_functions[]; // Postgres functions and views
extern const size_t embedded_functions_count;
extern const char
    embedded_functions_schema[]; // "tidings_" and the start of the SHA-256 of them all

extern const struct embedded_file embedded_redis_functions[]; // each named as its library
extern const size_t embedded_redis_functions_count;

extern const struct embedded_file embedded_web[];
extern const size_t embedded_web_count;

extern const struct embedded_file embedded_openapi[]; // openapi.json, openapi-3.0.json
extern const size_t embedded_openapi_count;

extern const struct embedded_file embedded_reference[]; // the page at /docs
extern const size_t embedded_reference_count;
