// SPDX-License-Identifier: Apache-2.0
// Builds a Redis function call in a fixed buffer.
#include "unread/fcall.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PLACE_OF_KEYS = 2 };

void fcall_text(struct fcall *call, const char *text)
{
    size_t size = strlen(text) + 1;

    ASSERT(call->count < FCALL_TEXTS_MAX && call->used + size <= sizeof call->bytes);
    memcpy(call->bytes + call->used, text, size);
    call->texts[call->count++] = call->bytes + call->used;
    call->used += size;
}

void fcall_int(struct fcall *call, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, number);
    fcall_text(call, text);
}

void fcall_begin(struct fcall *call, const char *function)
{
    call->count = 0;
    call->keys = 0;
    call->used = 0;
    fcall_text(call, "FCALL");
    fcall_text(call, function);
    call->count++; // number of keys: filled in by fcall_end()
}

void fcall_key(struct fcall *call, const char *key)
{
    call->keys++;
    fcall_text(call, key);
}

void fcall_end(struct fcall *call)
{
    int count = call->count;

    fcall_int(call, call->keys);
    call->texts[PLACE_OF_KEYS] = call->texts[count];
    call->count = count;
}
