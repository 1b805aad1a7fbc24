// SPDX-License-Identifier: Apache-2.0
// The arguments of a call, from query, form, multipart or JSON.
#include "call/request_arguments.h"

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// JSON of up to HEAVY_BYTES_MIN bytes is never heavy; above HEAVY_BYTES_MAX it always counts as
// heavy.
enum { HEAVY_BYTES_MIN = 256, HEAVY_BYTES_MAX = 65536, HEAVY_VALUES = 256 };

void arguments_init(struct arguments *arguments, struct arena *arena)
{
    arguments->arena = arena;
    arguments->items = arguments->first;
    arguments->count = 0;
    arguments->capacity = ARGUMENTS_FIRST;
    arguments->json = NULL;
    arguments->values_max = JSON_VALUES_ANY;
    arguments->error_text[0] = '\0';
}

void arguments_done(struct arguments *arguments)
{
    for (size_t i = 0; i < arguments->count; i++)
        json_decref(arguments->items[i].json);
    arguments->count = 0;
    json_decref(arguments->json);
    arguments->json = NULL;
}

const struct argument *arguments_find(const struct arguments *arguments, const char *name)
{
    for (size_t i = arguments->count; i > 0; i--) {
        if (strcmp(arguments->items[i - 1].name, name) == 0)
            return &arguments->items[i - 1];
    }
    return NULL;
}

bool arguments_is_hidden(const struct arguments *arguments, size_t index)
{
    const struct argument *argument = &arguments->items[index];
    return arguments_find(arguments, argument->name) != argument;
}

int arguments_fail(struct arguments *arguments, int r, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(arguments->error_text, sizeof arguments->error_text, format, values);
    va_end(values);
    return r;
}

static int arguments_grow(struct arguments *arguments)
{
    if (arguments->capacity >= ARGUMENTS_MAX)
        return arguments_fail(arguments, -ERROR_INVALID_ARGUMENTS, "more than %d arguments",
                              ARGUMENTS_MAX);
    size_t size = arguments->capacity * sizeof *arguments->items;
    struct argument *items = arena_alloc(arguments->arena, 2 * size);
    if (!items)
        return -ERROR_MEMORY;
    memcpy(items, arguments->items, size);
    arguments->items = items;
    arguments->capacity *= 2;
    return 0;
}

int arguments_add(struct arguments *arguments, const struct argument *argument)
{
    if (arguments->count == arguments->capacity) {
        int r = arguments_grow(arguments);
        if (r < 0)
            return r;
    }
    arguments->items[arguments->count++] = *argument;
    return 0;
}

int arguments_check_text(struct arguments *arguments, const struct argument *argument,
                         size_t name_length)
{
    if (memchr(argument->name, '[', name_length))
        return arguments_fail(arguments, -ERROR_INVALID_ARRAY_ARG,
                              "lists are a,b or JSON, not a[]=a");
    if (!text_is_utf8(argument->name, name_length))
        return arguments_fail(arguments, -ERROR_INVALID_FORM_DATA,
                              "an argument's name is not UTF-8");
    if (!text_is_utf8(argument->text, argument->length))
        return arguments_fail(arguments, -ERROR_INVALID_FORM_DATA, "%.64s: must be UTF-8 text",
                              name_length <= 64 ? argument->name : "an argument");
    return 0;
}

static bool argument_is_heavy(const struct argument *argument)
{
    char first = argument->text[0];
    if ((first != '[' && first != '{') || argument->length <= HEAVY_BYTES_MIN)
        return false;
    return argument->length > HEAVY_BYTES_MAX ||
           json_measure(argument->text, argument->length).values > HEAVY_VALUES;
}

bool arguments_are_heavy(const struct arguments *arguments)
{
    for (size_t i = 0; i < arguments->count; i++)
        if (argument_is_heavy(&arguments->items[i]))
            return true;
    return false;
}

void arguments_parse_ahead(struct arguments *arguments)
{
    for (size_t i = 0; i < arguments->count; i++) {
        struct argument *argument = &arguments->items[i];
        if (!argument_is_heavy(argument))
            continue;
        argument->json_r = json_read(argument->text, argument->length, JSON_DEPTH_MAX,
                                     arguments->values_max, &argument->json);
        argument->is_parsed = true;
    }
}
