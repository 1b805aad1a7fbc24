// SPDX-License-Identifier: Apache-2.0
// A JSON body by both of our readers and by jansson: all of them must find the same, and the
// measure that bounds the work must be right.
#include "../../src/call/json_plain.h"
#include "base/error.h"
#include "base/json.h"
#include "fuzz.h"

enum { FLAGS = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL };

static void tree_measure(const json_t *tree, int depth, struct json_size *size)
{
    const char *name;
    json_t *value;
    size_t index;
    size->values++;
    if (!json_is_object(tree) && !json_is_array(tree))
        return;
    if (depth > size->depth)
        size->depth = depth;
    json_object_foreach((json_t *)(uintptr_t)tree, name, value)
        tree_measure(value, depth + 1, size);
    json_array_foreach(tree, index, value) tree_measure(value, depth + 1, size);
}

static void argument_check(const struct argument *argument, const json_t *value)
{
    assert(value && argument->text[argument->length] == '\0');
    assert(argument->is_text == !(json_is_object(value) || json_is_array(value)));
    if (json_is_string(value)) {
        assert(argument->length == json_string_length(value));
        assert(memcmp(argument->text, json_string_value(value), argument->length) == 0);
        return;
    }
    CLEANUP_JSON json_t *again = json_loadb(argument->text, argument->length, FLAGS, NULL);
    assert(again && json_equal(again, value));
}

static size_t members_that_count(const json_t *tree)
{
    const char *name;
    json_t *value;
    size_t count = 0;
    json_object_foreach((json_t *)(uintptr_t)tree, name, value) count += !json_is_null(value);
    return count;
}

static void whole_check(const json_t *tree, const char *text, size_t length,
                        const struct arguments *arguments)
{
    struct json_size size = json_measure(text, length), real = {0};
    tree_measure(tree, 1, &real);
    assert(size.values == real.values && size.depth == real.depth);
    assert(arguments->count == members_that_count(tree));
    for (size_t i = 0; i < arguments->count; i++)
        argument_check(&arguments->items[i], json_object_get(tree, arguments->items[i].name));
}

static void token_check(const json_t *tree, const char *text, size_t length,
                        struct arguments *arguments)
{
    const char *token = arguments_json_token(arguments, text, length);
    const json_t *value = json_object_get(tree, "token");
    if (tree && token)
        assert(json_is_string(value) && strcmp(json_string_value(value), token) == 0);
}

static void plain_check(const char *data, size_t size, struct arena *arena,
                        const struct arguments *whole, int r)
{
    struct arguments plain;
    char *text = fuzz_text(data, size);
    arguments_init(&plain, arena);
    int taken = json_plain_add(&plain, text, size);
    assert(taken >= 0);
    if (taken == 0)
        assert(memcmp(text, data, size) == 0);
    else
        assert(r == 0 && plain.count == whole->count);
    for (size_t i = 0; i < plain.count; i++) {
        const struct argument *a = &plain.items[i], *b = &whole->items[i];
        assert(a->is_text && b->is_text && strcmp(a->name, b->name) == 0);
        assert(a->length == b->length && memcmp(a->text, b->text, a->length) == 0);
        assert(a->text[a->length] == '\0');
    }
    arguments_done(&plain);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct arguments arguments;
    char *text = fuzz_text(data, size);
    arena_init(&arena);
    arguments_init(&arguments, &arena);
    int r = arguments_add_json(&arguments, text, size);
    assert(r != -ERROR_INTERNAL && r != -ERROR_MEMORY);
    CLEANUP_JSON json_t *tree = json_measure(text, size).depth <= JSON_DEPTH_MAX
                                    ? json_loadb(text, size, FLAGS, NULL)
                                    : NULL;
    assert(tree || r < 0);
    if (r == 0)
        whole_check(tree, text, size, &arguments);
    token_check(tree, text, size, &arguments);
    plain_check((const char *)data, size, &arena, &arguments, r);
    arguments_done(&arguments);
    arena_done(&arena);
    free(text);
    return 0;
}
