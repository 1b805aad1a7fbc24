// SPDX-License-Identifier: Apache-2.0
// Kinds of characters and blanks in any bytes; prefixes and folding of UTF-8; names in a text.
#include "base/text.h"
#include "base/unicode.h"
#include "chat/names.h"
#include "fuzz.h"

static void kinds_check(const char *text, size_t size)
{
    bool shows = false;
    size_t step;
    for (size_t at = 0; at < size; at += step) {
        enum unicode_kind kind = unicode_kind_of(text + at, size - at, &step);
        assert(step >= 1 && step <= size - at);
        assert(step == 1 || text_is_utf8(text + at, step));
        shows |= kind != UNICODE_INVISIBLE && kind != UNICODE_JOINER;
    }
    assert(unicode_is_blank(text, size) == !shows);
}

// A prefix has whole characters, no more than it may, and is the same whatever follows its end.
static void prefix_check(const char *text, size_t size, size_t max)
{
    size_t length = unicode_prefix_length(text, size, max);
    size_t points = text_code_points(text, length);
    assert(length <= size && points <= max);
    assert(length == text_prefix_length(text, size, points));
    assert(length > 0 || size == 0 || max == 0);
    assert(length == size || unicode_prefix_length(text, size, points) == length);
}

static void fold_check(const char *text, size_t size)
{
    char *once = unicode_fold(text, size);
    assert(once && text_is_utf8(once, strlen(once)));
    char *twice = unicode_fold(once, strlen(once));
    assert(twice && strcmp(once, twice) == 0);
    free(twice);
    free(once);
}

static const char *nobody(const void *arg, const char *name, size_t length)
{
    (void)arg;
    return length % 2 == 0 && name[0] != '\0' ? "U1" : NULL;
}

static void names_check(const char *text, size_t size)
{
    struct buffer out;
    buffer_init(&out, SIZE_MAX);
    names_link(text, size, nobody, NULL, &out);
    assert(!buffer_failed(&out));
    buffer_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    kinds_check(text, size);
    names_check(text, size);
    if (!text_is_utf8(text, size))
        return 0;
    fold_check(text, size);
    for (size_t max = 0; max < 12; max++)
        prefix_check(text, size, max);
    return 0;
}
