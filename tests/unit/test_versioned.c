// SPDX-License-Identifier: Apache-2.0
#include "base/versioned.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static int64_t numbers[2];

static int parse(const char *text)
{
    numbers[0] = numbers[1] = -1;
    return versioned_parse(text, strlen(text), 's', numbers, 2);
}

static void the_first_version_has_its_numbers(void **state)
{
    (void)state;
    assert_int_equal(parse("s1.9223372036854775807.0"), 1);
    assert_true(numbers[0] == INT64_MAX && numbers[1] == 0);
}

static void what_is_appended_is_ignored(void **state)
{
    (void)state;
    assert_int_equal(parse("s1.5.6.0007.99999999999999999999999999"), 1);
    assert_true(numbers[0] == 5 && numbers[1] == 6);
}

static void of_a_later_version_nothing_is_known(void **state)
{
    (void)state;
    assert_int_equal(parse("s2.99999999999999999999999999"), 2);
    assert_int_equal(parse("s999.0"), 999);
    assert_true(numbers[0] == -1 && numbers[1] == -1);
}

static void anything_else_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "s",
                                      "s1",
                                      "s1.",
                                      "s1.5",
                                      "s1.5.",
                                      "s1..5.6",
                                      "s1.5.6.",
                                      "s1.5.6..",
                                      "s1.5.6.x",
                                      "s1.5.6 ",
                                      "S1.5.6",
                                      "e1.5.6",
                                      "s0.5.6",
                                      "s01.5.6",
                                      "s1.05.6",
                                      "s1.-5.6",
                                      "s1.+5.6",
                                      "s1000.5.6",
                                      "s2",
                                      "s2.",
                                      "s2..5",
                                      "s2.x",
                                      "s2.5.",
                                      "s.5.6",
                                      " s1.5.6",
                                      "s1,5.6",
                                      "s-1.5.6",
                                      "s1.5.6.-",
                                      "s1.5e1.6",
                                      "s1.9223372036854775808.0"};
    char longer[1100] = "s1.5.6.";
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(parse(bad[i]) < 0);
    memset(longer + strlen(longer), '7', 1017);
    assert_int_equal(parse(longer), 1);
    longer[1024] = '7';
    assert_true(parse(longer) < 0);
    assert_true(versioned_parse("s1.5.6\0.7", 9, 's', numbers, 2) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_version_has_its_numbers),
        cmocka_unit_test(what_is_appended_is_ignored),
        cmocka_unit_test(of_a_later_version_nothing_is_known),
        cmocka_unit_test(anything_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
