// SPDX-License-Identifier: Apache-2.0
// Writes JSON directly into a buffer, without building a tree. Inserts commas itself. Errors show
// in the buffer (buffer_failed()). Strings must be valid UTF-8; only characters that JSON requires
// are escaped. No function here may have the name of a jansson function (json_string, json_null …):
// the linker would make jansson call it.
#pragma once

#include "base/buffer.h"

#include <string.h>

struct json_writer {
    struct buffer *out; // not owned
    bool comma;         // whether the next value needs a comma before it
};

// Returns a writer that appends to `out`, which must outlive it.
struct json_writer json_writer_to(struct buffer *out);

void json_open_object(struct json_writer *w);
void json_close_object(struct json_writer *w);
void json_open_array(struct json_writer *w);
void json_close_array(struct json_writer *w);

// Writes the key of the next value. Keys are literals of the program and are not escaped. Inline,
// so that their length is known when compiled.
static inline void json_key(struct json_writer *w, const char *key)
{
    size_t length = strlen(key);
    char *start = buffer_reserve(w->out, length + 4);
    if (!start)
        return;
    char *to = start;
    *to = ',';
    to += w->comma;
    *to = '"';
    memcpy(to + 1, key, length);
    memcpy(to + 1 + length, "\":", 2);
    w->out->length += (size_t)(to - start) + length + 3;
    w->comma = false;
}

void json_text(struct json_writer *w, const char *text);
void json_string_n(struct json_writer *w, const char *text, size_t length);
void json_int(struct json_writer *w, int64_t number);
void json_bool(struct json_writer *w, bool value);
void json_none(struct json_writer *w);
// Writes `ts_us` microseconds as a Slack-style ts ("1717200000.123456").
void json_ts(struct json_writer *w, int64_t ts_us);
// Copies text that is valid JSON already.
void json_raw(struct json_writer *w, const char *json, size_t length);

// Writes key and value in one call.
static inline void json_key_string(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_text(w, text);
}

static inline void json_key_int(struct json_writer *w, const char *key, int64_t number)
{
    json_key(w, key);
    json_int(w, number);
}

static inline void json_key_bool(struct json_writer *w, const char *key, bool value)
{
    json_key(w, key);
    json_bool(w, value);
}

static inline void json_key_ts(struct json_writer *w, const char *key, int64_t ts_us)
{
    json_key(w, key);
    json_ts(w, ts_us);
}
