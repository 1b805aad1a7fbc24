// SPDX-License-Identifier: Apache-2.0
// Names of emoji.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "chat/emoji.h"

static bool valid(const char *text)
{
    return emoji_name_is_valid(text, strlen(text));
}

static void names_have_few_characters(void **state)
{
    (void)state;
    assert_true(valid("tada") && valid("+1") && valid("-1") && valid("it's_3") && valid("_"));
    assert_false(valid("") || valid(":tada:") || valid("Tada") || valid("a b") ||
                 valid("\xc3\xa9"));
    assert_false(emoji_name_is_valid("a\0b", 3));
}

static void skin_tones_come_last_and_once(void **state)
{
    (void)state;
    for (char tone = '0'; tone <= '9'; tone++) {
        char text[] = "wave::skin-tone-?";
        text[sizeof text - 2] = tone;
        assert_int_equal(valid(text), tone >= '2' && tone <= '6');
    }
    assert_false(valid("::skin-tone-2") || valid("wave::skin-tone-") ||
                 valid("wave::skin-tone-22"));
    assert_false(valid("wave::skin-tone-2::skin-tone-2") || valid("wave::") ||
                 valid("wave::skin-tona-2"));
}

static void names_have_a_greatest_length(void **state)
{
    char text[EMOJI_NAME_MAX + 16];
    (void)state;
    memset(text, 'a', sizeof text);
    assert_true(emoji_name_is_valid(text, EMOJI_NAME_MAX));
    assert_false(emoji_name_is_valid(text, EMOJI_NAME_MAX + 1));
    memcpy(text + EMOJI_NAME_MAX, "::skin-tone-2", 13);
    assert_true(emoji_name_is_valid(text, EMOJI_NAME_MAX + 13));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_few_characters),
        cmocka_unit_test(skin_tones_come_last_and_once),
        cmocka_unit_test(names_have_a_greatest_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
