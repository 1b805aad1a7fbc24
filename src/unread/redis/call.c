// SPDX-License-Identifier: Apache-2.0
// Builds a call of one of our Redis functions in a fixed buffer.
#include "unread/call.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PLACE_OF_KEYS = 2 };

void call_text(struct call *call, const char *text)
{
    size_t size = strlen(text) + 1;

    ASSERT(call->count < CALL_TEXTS_MAX && call->used + size <= sizeof call->bytes);
    memcpy(call->bytes + call->used, text, size);
    call->texts[call->count++] = call->bytes + call->used;
    call->used += size;
}

void call_int(struct call *call, int64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, number);
    call_text(call, text);
}

void call_begin(struct call *call, const char *function)
{
    call->count = 0;
    call->keys = 0;
    call->used = 0;
    call_text(call, "FCALL");
    call_text(call, function);
    call->count++; // how many keys: told by call_end()
}

void call_key(struct call *call, const char *key)
{
    call->keys++;
    call_text(call, key);
}

void call_end(struct call *call)
{
    int count = call->count;

    call_int(call, call->keys);
    call->texts[PLACE_OF_KEYS] = call->texts[count];
    call->count = count;
}
