// SPDX-License-Identifier: Apache-2.0
// The quick reader of plain JSON objects against the whole one: what it takes, it must read alike.
#include "../../src/call/json_plain.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { TEXT_SIZE = 256, RUNS = 200000 };

struct reading {
    struct arena arena;
    struct arguments arguments;
};

static void reading_init(struct reading *reading)
{
    arena_init(&reading->arena);
    arguments_init(&reading->arguments, &reading->arena);
}

static void reading_done(struct reading *reading)
{
    arguments_done(&reading->arguments);
    arena_done(&reading->arena);
}

static void assert_alike(const struct arguments *a, const struct arguments *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_string_equal(a->items[i].name, b->items[i].name);
        assert_int_equal(a->items[i].length, b->items[i].length);
        assert_string_equal(a->items[i].text, b->items[i].text);
        assert_int_equal(a->items[i].is_text, b->items[i].is_text);
    }
}

// Whether the quick reader takes the text; then the other one must have read the same.
static int taken(const char *text, size_t length)
{
    char copy[TEXT_SIZE + 1];
    struct reading quick, whole;
    memcpy(copy, text, length);
    copy[length] = '\0';
    reading_init(&quick);
    reading_init(&whole);
    int r = json_plain_add(&quick.arguments, copy, length);
    if (r > 0) {
        assert_int_equal(arguments_add_json(&whole.arguments, text, length), 0);
        assert_alike(&quick.arguments, &whole.arguments);
    } else {
        assert_int_equal(r, 0);
        assert_memory_equal(copy, text, length);
    }
    reading_done(&quick);
    reading_done(&whole);
    return r;
}

static int taken_text(const char *text)
{
    return taken(text, strlen(text));
}

static void plain_objects_are_taken(void **state)
{
    (void)state;
    assert_int_equal(taken_text("{\"channel\":\"C1\",\"text\":\"hello\"}"), 1);
    assert_int_equal(taken_text(" {\r\n\t\"a\" : \"\" , \"b\":\"gr\xc3\xbc\xc3\x9f 😀\"\n} "), 1);
    assert_int_equal(taken_text("{\"\":\"{\\u007d\"}"), 0);
    assert_int_equal(taken_text("{\"\":\"{},:[\"}"), 1);
}

static void all_else_is_left_to_the_whole_reader(void **state)
{
    static const char *const texts[] = {
        "",
        "{}",
        "[\"a\"]",
        "{\"a\":1}",
        "{\"a\":true}",
        "{\"a\":null}",
        "{\"a\":{\"b\":\"c\"}}",
        "{\"a\":[\"b\"]}",
        "{\"a\":\"\\n\"}",
        "{\"a\\n\":\"b\"}",
        "{\"a\":\"b\",\"a\":\"c\"}",
        "{\"a\":\"b\",}",
        "{\"a\":\"b\"",
        "{\"a\":\"b",
        "{\"a\":\"b\"}}",
        "{\"a\":\"b\"} x",
        "{\"a\" \"b\"}",
        "{\"a\":\"b\" \"c\":\"d\"}",
        "{\"a\":\"\x1f\"}",
        "{\"a\":\"\xc0\xaf\"}",
        "{\"a\":\"\xed\xa0\x80\"}",
        "{\"\xff\":\"b\"}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (taken_text(texts[i]) != 0)
            fail_msg("taken: %s", texts[i]);
    assert_int_equal(taken("{\"a\":\"b\0\"}", 10), 0);
    assert_int_equal(taken("{\"a\":\"b\"}\0", 10), 0);
}

// Texts of the bytes that mean something, most of them next to a good one.
static void whatever_is_taken_is_read_alike(void **state)
{
    static const char bytes[] = "\"\"\"\",,::{}{}[]ab \n\\u0t1-\x01\xc3\xa9\xf0\x9f\x98\x80";
    static const char good[] = "{\"a\":\"b\", \"bb\" : \"\", \"c\":\"\xc3\xa9\"}";
    int count = 0;
    (void)state;
    srandom(7);
    for (int i = 0; i < RUNS; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        for (long changes = random() % 4; changes > 0; changes--)
            text[random() % (long)(sizeof good - 1)] = bytes[random() % (long)sizeof bytes];
        count += taken(text, sizeof good - 1);
    }
    assert_in_range(count, RUNS / 4, RUNS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_objects_are_taken),
        cmocka_unit_test(all_else_is_left_to_the_whole_reader),
        cmocka_unit_test(whatever_is_taken_is_read_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
