// SPDX-License-Identifier: Apache-2.0
// The first line is the content type, the rest the body. What was read is written with another
// boundary, and read again.
#include "base/buffer.h"
#include "call/request_arguments.h"
#include "fuzz.h"

static const char content_type[] = "multipart/form-data; boundary=another-boundary";
static const char mark[] = "--another-boundary";

static void body_write(const struct arguments *arguments, struct buffer *out)
{
    for (size_t i = 0; i < arguments->count; i++) {
        const struct argument *argument = &arguments->items[i];
        const char *quote = strchr(argument->name, '"') ? "" : "\"";
        buffer_append_format(out, "%s%s\r\ncontent-disposition: form-data; name=%s%s%s\r\n\r\n",
                             i == 0 ? "" : "\r\n", mark, quote, argument->name, quote);
        buffer_append(out, argument->text, argument->length);
    }
    buffer_append_format(out, "%s%s--\r\n", arguments->count == 0 ? "" : "\r\n", mark);
    buffer_append_byte(out, '\0');
    assert(!buffer_failed(out));
}

static void arguments_compare(const struct arguments *one, const struct arguments *other)
{
    assert(one->count == other->count);
    for (size_t i = 0; i < one->count; i++) {
        const struct argument *a = &one->items[i], *b = &other->items[i];
        assert(strcmp(a->name, b->name) == 0 && a->length == b->length);
        assert(a->text[a->length] == '\0' && memcmp(a->text, b->text, a->length) == 0);
    }
}

static void written_check(const struct arguments *arguments, struct arena *arena)
{
    struct arguments again;
    struct buffer body;
    buffer_init(&body, 1 << 24);
    body_write(arguments, &body);
    arguments_init(&again, arena);
    int r = arguments_add_multipart(&again, content_type, body.data, body.length - 1);
    assert(r == 0);
    arguments_compare(arguments, &again);
    arguments_done(&again);
    buffer_done(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct arguments arguments;
    size_t rest;
    size_t line = fuzz_line(data, size, &rest);
    char *type = fuzz_text(data, line);
    char *body = fuzz_text(data + rest, size - rest);
    arena_init(&arena);
    arguments_init(&arguments, &arena);
    int r = arguments_add_multipart(&arguments, type, body, size - rest);
    if (r == 0 && !memmem(data + rest, size - rest, mark, sizeof mark - 1))
        written_check(&arguments, &arena);
    arguments_done(&arguments);
    arena_done(&arena);
    free(type);
    free(body);
    return 0;
}
