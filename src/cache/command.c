// SPDX-License-Identifier: Apache-2.0
// Writes commands in Redis' wire format directly into the buffer: hiredis would allocate memory of
// its own first.
#include "command.h"

#include <string.h>
#include <strings.h>

const char *command_library_suffix(const char *library_name)
{
    const char *suffix = strrchr(library_name, '_');
    return suffix ? suffix : "";
}

bool command_is_function_call(const char *verb)
{
    return strcasecmp(verb, "FCALL") == 0 || strcasecmp(verb, "FCALL_RO") == 0;
}

static void put_count(struct buffer *out, char kind, size_t count)
{
    buffer_append_byte(out, kind);
    buffer_append_int(out, (int64_t)count);
    buffer_append(out, "\r\n", 2);
}

static void put_text(struct buffer *out, const char *text, size_t length)
{
    put_count(out, '$', length);
    buffer_append(out, text, length);
    buffer_append(out, "\r\n", 2);
}

static void put_function(struct buffer *out, const char *name, size_t length, const char *suffix)
{
    size_t suffix_length = strlen(suffix);
    put_count(out, '$', length + suffix_length);
    buffer_append(out, name, length);
    buffer_append(out, suffix, suffix_length);
    buffer_append(out, "\r\n", 2);
}

void command_append(struct buffer *out, const char *suffix, int count, const char *const *texts,
                    const size_t *lengths)
{
    int function = command_is_function_call(texts[0]) ? 1 : -1;
    put_count(out, '*', (size_t)count);
    for (int i = 0; i < count; i++) {
        size_t length = lengths ? lengths[i] : strlen(texts[i]);
        if (i == function)
            put_function(out, texts[i], length, suffix);
        else
            put_text(out, texts[i], length);
    }
}
