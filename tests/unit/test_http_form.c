// SPDX-License-Identifier: Apache-2.0
// Forms and queries, and bodies of other charsets.
#include "../../src/call/charset.h"
#include "base/error.h"
#include "call/request_arguments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;
static struct arguments arguments;
static char *form;

// A copy with one byte behind it: writing past that is seen by the sanitizers.
static int form_add(const char *text)
{
    size_t length = strlen(text);

    free(form);
    form = malloc(length + 1);
    assert_non_null(form);
    memcpy(form, text, length + 1);
    return arguments_add_form(&arguments, form, length);
}

// Frees what an earlier form left, also when a test failed.
static void form_begin(void)
{
    arguments_done(&arguments);
    arena_done(&arena);
    arena_init(&arena);
    arguments_init(&arguments, &arena);
}

static int form_end(void **state)
{
    (void)state;
    form_begin();
    free(form);
    return 0;
}

// The form, as "name=value" of each argument with '|' between, is `expected`.
static void form_is(const char *text, const char *expected)
{
    char found[256] = "";

    form_begin();
    assert_int_equal(form_add(text), 0);
    for (size_t i = 0; i < arguments.count; i++) {
        const struct argument *argument = &arguments.items[i];
        assert_int_equal(strlen(argument->text), argument->length);
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s=%s", i == 0 ? "" : "|",
                 argument->name, argument->text);
    }
    assert_string_equal(found, expected);
}

static void pairs(void **state)
{
    (void)state;
    form_is("", "");
    form_is("a=1", "a=1");
    form_is("a=1&b=2", "a=1|b=2");
    form_is("a", "a=");
    form_is("a=", "a=");
    form_is("=1", "=1");
    form_is("=", "");
    form_is("&&a=1&&", "a=1");
    form_is("a==b=", "a==b=");
    form_is("a=1&a=2", "a=1|a=2");
}

static void coded_bytes(void **state)
{
    (void)state;
    form_is("a=b+c", "a=b c");
    form_is("a%20b=%3D%26", "a b==&");
    form_is("a=%C3%a9", "a=\xC3\xA9");
    form_is("a=100%", "a=100%");
    form_is("a=100% sure", "a=100% sure");
    form_is("a=%2", "a=%2");
    form_is("a=%4g%", "a=%4g%");
    form_is("a=%%41", "a=%A");
}

static void of_one_name_the_later_counts(void **state)
{
    (void)state;
    form_begin();
    assert_int_equal(form_add("a=1&b=2&a=3"), 0);
    assert_string_equal(arguments_find(&arguments, "a")->text, "3");
    assert_true(arguments_is_hidden(&arguments, 0));
    assert_false(arguments_is_hidden(&arguments, 2));
    assert_null(arguments_find(&arguments, "c"));
}

static void fails(const char *text, int r, const char *error_text)
{
    form_begin();
    assert_int_equal(form_add(text), r);
    assert_string_equal(arguments.error_text, error_text);
}

static void what_is_refused(void **state)
{
    char many[2 * ARGUMENTS_MAX + 8] = "";

    (void)state;
    fails("a[]=1", -ERROR_INVALID_ARRAY_ARG, "lists are a,b or JSON, not a[]=a");
    fails("a=x%00y", -ERROR_INVALID_FORM_DATA, "a: must be UTF-8 text");
    fails("a=%ff", -ERROR_INVALID_FORM_DATA, "a: must be UTF-8 text");
    fails("%ff=a", -ERROR_INVALID_FORM_DATA, "an argument's name is not UTF-8");
    for (int i = 0; i < ARGUMENTS_MAX; i++)
        memcpy(many + 2 * i, "a&", 3);
    form_begin();
    assert_int_equal(form_add(many), 0);
    assert_int_equal(arguments.count, ARGUMENTS_MAX);
    memcpy(many + 2 * ARGUMENTS_MAX, "a", 2);
    form_begin();
    assert_int_equal(form_add(many), -ERROR_INVALID_ARGUMENTS);
}

static void charsets(void **state)
{
    static const struct {
        const char *content_type;
        enum charset charset;
    } cases[] = {
        {NULL, CHARSET_UTF_8},
        {"", CHARSET_UTF_8},
        {"application/json", CHARSET_UTF_8},
        {"application/json; charset=utf-8", CHARSET_UTF_8},
        {"application/json;CharSet=\"UTF-8\"", CHARSET_UTF_8},
        {"text/plain; charset=ISO-8859-1; x=y", CHARSET_LATIN_1},
        {"text/plain; charset=utf-16", CHARSET_UNKNOWN},
        {"text/plain; charset=utf-80", CHARSET_UNKNOWN},
        {"text/plain; charset=", CHARSET_UNKNOWN},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(charset_of(cases[i].content_type), cases[i].charset);
}

static void widens(const char *text, size_t length, bool is_form, const char *expected)
{
    static struct buffer out;

    buffer_done(&out); // of the one before
    buffer_init(&out, 256);
    charset_widen(text, length, is_form, &out);
    assert_false(buffer_failed(&out));
    assert_int_equal(out.length, strlen(expected));
    assert_memory_equal(out.data, expected, out.length);
}

static void latin_1(void **state)
{
    (void)state;
    widens("plain", 5, false, "plain");
    widens("caf\xE9", 4, false, "caf\xC3\xA9");
    widens("\x80\xFF", 2, true, "\xC2\x80\xC3\xBF");
    widens("a=%E9%41", 8, true, "a=\xC3\xA9%41"); // what is ASCII stays coded
    widens("a=%E9", 5, false, "a=%E9");
    widens("a=%E", 4, true, "a=%E");
    widens("%zz%", 4, true, "%zz%");
    widens("%E9", 2, true, "%E"); // the third byte is not its own
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs),
        cmocka_unit_test(coded_bytes),
        cmocka_unit_test(of_one_name_the_later_counts),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(charsets),
        cmocka_unit_test(latin_1),
    };
    return cmocka_run_group_tests(tests, NULL, form_end);
}
