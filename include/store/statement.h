// SPDX-License-Identifier: Apache-2.0
// Statements, parameters and results, independent of libpq's types.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// SQL with $1, $2 …, a static constant of the module that uses it. Each connection prepares it on
// first use.
struct statement {
    const char *name; // unique; a valid identifier: "channels_join"
    const char *sql;
};

// The parameters of one call, in order, at most PARAMS_MAX. All-zero is empty; values are copied.
// Errors (out of memory, too many parameters) are reported by the store_call() or session_call()
// that takes the parameters.
enum { PARAMS_MAX = 32 };
struct params {
    struct buffer bytes;
    int count;
    struct {
        size_t offset;
        int length;    // -1 = NULL
        uint32_t type; // Postgres type oid
    } value[PARAMS_MAX];
};

#define CLEANUP_PARAMS CLEANUP(params_done)

void params_done(struct params *params);
void params_text(struct params *params, const char *text); // NULL: SQL NULL
void params_text_n(struct params *params, const char *text, size_t length);
void params_int(struct params *params, int64_t number); // bigint
void params_bool(struct params *params, bool value);    // boolean
void params_xid(struct params *params, int64_t xid);    // text, for $1::xid8

// Arrays: open one, add elements, close it.
void params_open_text_array(struct params *params);
void params_open_int_array(struct params *params);
void params_open_bool_array(struct params *params);
void params_element_text(struct params *params, const char *text); // NULL: a NULL element
void params_element_text_n(struct params *params, const char *text, size_t length);
void params_element_int(struct params *params, int64_t number);
void params_element_bool(struct params *params, bool value);
void params_close_array(struct params *params);

// The rows of a reply. Valid only inside the callback that received them; from a session, until
// result_free(). Columns are numbered from 0. NULL and values outside the result read as 0 or "".
struct result;
int result_rows(const struct result *result);
bool result_is_null(const struct result *result, int row, int column);
const char *result_text(const struct result *result, int row, int column); // NUL-terminated
size_t result_length(const struct result *result, int row, int column);
int64_t result_int(const struct result *result, int row, int column);
// Reads `count` adjacent columns in one call, which is faster for very many rows. All columns must
// exist. NULL reads as "".
struct result_field {
    const char *text; // NUL-terminated
    size_t length;
};
void result_fields(const struct result *result, int row, int column, int count,
                   struct result_field *ret_fields);
int64_t result_field_int(const struct result_field *field);
// Reads at most `max` elements of an integer array into `ret_numbers`. Returns the length of the
// array; 0 if it is NULL.
int result_ints(const struct result *result, int row, int column, int64_t *ret_numbers, int max);
bool result_bool(const struct result *result, int row, int column);
