// SPDX-License-Identifier: Apache-2.0
// Parameters in Postgres' binary format. An array is
//
//   dimensions = 1 | may hold NULLs = 1 | element type | count | lower bound = 1 | (length | bytes)
//   …
//
// each field four bytes, most significant first; the length of a NULL is -1.
#include <endian.h>

#include "base/check.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "params_internal.h"

enum type {
    TYPE_BOOL = 16,
    TYPE_INT = 20,
    TYPE_TEXT = 25,
    TYPE_BOOL_ARRAY = 1000,
    TYPE_TEXT_ARRAY = 1009,
    TYPE_INT_ARRAY = 1016
};

static const size_t bytes_max = 64 * 1024 * 1024;
static const size_t array_count_at = 12;
static const int length_null = -1;
static const int length_open = -2; // an array not yet closed

void params_done(struct params *params)
{
    buffer_done(&params->bytes);
    params->bytes.length_max = 0;
    params->count = 0;
}

void params_copy(struct params *ret_params, const struct params *params)
{
    ASSERT(ret_params != params);
    *ret_params = *params;
    ret_params->bytes = (struct buffer){.length_max = params->bytes.length_max};
    buffer_append(&ret_params->bytes, params->bytes.data, params->bytes.length);
    ret_params->bytes.failed = ret_params->bytes.failed || params->bytes.failed;
}

bool params_are_whole(const struct params *params)
{
    return !buffer_failed(&params->bytes);
}

uint32_t params_types_hash(const struct params *params)
{
    uint32_t hash = 2166136261u;
    for (int i = 0; i < params->count; i++)
        hash = (hash ^ params->value[i].type) * 16777619u;
    return hash;
}

// Starts the next parameter; bytes appended to `bytes` afterwards are its value.
static void value_open(struct params *params, enum type type, int length)
{
    ASSERT(params->count == 0 || !params_are_whole(params) ||
           params->value[params->count - 1].length != length_open);
    params->bytes.length_max = bytes_max;
    if (params->count == PARAMS_MAX) {
        params->bytes.failed = true;
        return;
    }
    params->value[params->count].offset = params->bytes.length;
    params->value[params->count].length = length;
    params->value[params->count].type = type;
    params->count++;
}

static void put_int32(struct params *params, uint32_t number)
{
    uint32_t bytes = htobe32(number);
    buffer_append(&params->bytes, &bytes, sizeof bytes);
}

static void put_int64(struct params *params, int64_t number)
{
    uint64_t bytes = htobe64((uint64_t)number);
    buffer_append(&params->bytes, &bytes, sizeof bytes);
}

void params_text(struct params *params, const char *text)
{
    params_text_n(params, text, text ? strlen(text) : 0);
}

void params_text_n(struct params *params, const char *text, size_t length)
{
    ASSERT(text || length == 0);
    // A length that exceeds an int exceeds the buffer's maximum too.
    value_open(params, TYPE_TEXT, text ? (int)length : length_null);
    if (text)
        buffer_append(&params->bytes, text, length);
}

void params_int(struct params *params, int64_t number)
{
    value_open(params, TYPE_INT, sizeof number);
    put_int64(params, number);
}

void params_bool(struct params *params, bool value)
{
    value_open(params, TYPE_BOOL, 1);
    buffer_append_byte(&params->bytes, value);
}

void params_xid(struct params *params, int64_t xid)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, xid);
    params_text(params, text);
}

static void array_open(struct params *params, enum type type, enum type element)
{
    value_open(params, type, length_open);
    put_int32(params, 1);
    put_int32(params, 1);
    put_int32(params, element);
    put_int32(params, 0);
    put_int32(params, 1);
}

void params_open_text_array(struct params *params)
{
    array_open(params, TYPE_TEXT_ARRAY, TYPE_TEXT);
}

void params_open_int_array(struct params *params)
{
    array_open(params, TYPE_INT_ARRAY, TYPE_INT);
}

void params_open_bool_array(struct params *params)
{
    array_open(params, TYPE_BOOL_ARRAY, TYPE_BOOL);
}

// Counts one more element of the open array and writes its length.
static void element_open(struct params *params, uint32_t type, int length)
{
    if (!params_are_whole(params))
        return;
    ASSERT(params->count > 0 && params->value[params->count - 1].length == length_open);
    ASSERT(params->value[params->count - 1].type == type);
    char *at = params->bytes.data + params->value[params->count - 1].offset + array_count_at;
    ASSERT(params->value[params->count - 1].offset + array_count_at < params->bytes.length);
    uint32_t count;
    memcpy(&count, at, sizeof count);
    count = htobe32(be32toh(count) + 1);
    memcpy(at, &count, sizeof count);
    put_int32(params, (uint32_t)length);
}

void params_element_text(struct params *params, const char *text)
{
    params_element_text_n(params, text, text ? strlen(text) : 0);
}

void params_element_text_n(struct params *params, const char *text, size_t length)
{
    element_open(params, TYPE_TEXT_ARRAY, text ? (int)length : length_null);
    if (text)
        buffer_append(&params->bytes, text, length);
}

void params_element_int(struct params *params, int64_t number)
{
    element_open(params, TYPE_INT_ARRAY, sizeof number);
    put_int64(params, number);
}

void params_element_bool(struct params *params, bool value)
{
    element_open(params, TYPE_BOOL_ARRAY, 1);
    buffer_append_byte(&params->bytes, value);
}

void params_close_array(struct params *params)
{
    if (!params_are_whole(params))
        return;
    ASSERT(params->count > 0 && params->value[params->count - 1].length == length_open);
    size_t length = params->bytes.length - params->value[params->count - 1].offset;
    params->value[params->count - 1].length = (int)length;
}
