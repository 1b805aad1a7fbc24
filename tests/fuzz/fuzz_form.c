// SPDX-License-Identifier: Apache-2.0
// Forms and queries, against a reader that does one thing after the other.
#include "base/error.h"
#include "base/text.h"
#include "call/request_arguments.h"
#include "fuzz.h"

#include <ctype.h>

struct pair {
    char *name;
    size_t name_length;
    char *value;
    size_t length;
};

static char *decode(const char *text, size_t length, size_t *ret_length)
{
    char *out = fuzz_text(text, length);
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        out[used] = text[i] == '+' ? ' ' : text[i];
        if (text[i] == '%' && i + 2 < length && isxdigit((unsigned char)text[i + 1]) &&
            isxdigit((unsigned char)text[i + 2])) {
            char digits[] = {text[i + 1], text[i + 2], '\0'};
            out[used] = (char)strtol(digits, NULL, 16);
            i += 2;
        }
        used++;
    }
    out[used] = '\0';
    *ret_length = used;
    return out;
}

static struct pair pair_read(const char *text, size_t length)
{
    struct pair pair;
    const char *equals = length > 0 ? memchr(text, '=', length) : NULL;
    size_t name_length = equals ? (size_t)(equals - text) : length;
    size_t value_at = equals ? name_length + 1 : length;
    pair.name = decode(text, name_length, &pair.name_length);
    pair.value = decode(text + value_at, length - value_at, &pair.length);
    return pair;
}

// What the pair makes of the arguments: an error, or one more, or (1) nothing.
static int pair_expect(const struct pair *pair, const struct arguments *arguments, size_t index)
{
    if (pair->name_length == 0 && pair->length == 0)
        return 1;
    if (memchr(pair->name, '[', pair->name_length))
        return -ERROR_INVALID_ARRAY_ARG;
    if (!text_is_utf8(pair->name, pair->name_length) || !text_is_utf8(pair->value, pair->length))
        return -ERROR_INVALID_FORM_DATA;
    if (index >= arguments->count)
        return 0;
    const struct argument *argument = &arguments->items[index];
    assert(strcmp(argument->name, pair->name) == 0);
    assert(argument->length == pair->length && argument->text[pair->length] == '\0');
    assert(memcmp(argument->text, pair->value, pair->length) == 0);
    return 0;
}

static int form_expect(const char *text, size_t size, const struct arguments *arguments)
{
    size_t index = 0;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '&', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at;
        struct pair pair = pair_read(text + at, length);
        int r = pair_expect(&pair, arguments, index);
        free(pair.name);
        free(pair.value);
        if (r < 0)
            return r;
        index += r == 0;
        if (index > ARGUMENTS_MAX)
            return -ERROR_INVALID_ARGUMENTS;
        at += length + 1;
    }
    assert(index == arguments->count);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct arguments arguments;
    char *text = fuzz_text(data, size);
    arena_init(&arena);
    arguments_init(&arguments, &arena);
    int r = arguments_add_form(&arguments, text, size);
    assert(form_expect((const char *)data, size, &arguments) == r);
    arguments_done(&arguments);
    arena_done(&arena);
    free(text);
    return 0;
}
