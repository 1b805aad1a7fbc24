// SPDX-License-Identifier: Apache-2.0
#include "base/unicode.h"

#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static void test_kinds(void **state)
{
    static const struct {
        const char *text;
        enum unicode_kind kind;
    } cases[] = {
        {"a", UNICODE_LETTER},
        {"Z", UNICODE_CAPITAL},
        {"7", UNICODE_NUMBER},
        {" ", UNICODE_INVISIBLE},
        {"\n", UNICODE_INVISIBLE},
        {"\x7f", UNICODE_INVISIBLE},
        {"-", UNICODE_OTHER},
        {"é", UNICODE_LETTER},
        {"É", UNICODE_CAPITAL},
        {"ǅ", UNICODE_CAPITAL}, // a title-case letter
        {"ʰ", UNICODE_LETTER},
        {"字", UNICODE_LETTER},
        {"가", UNICODE_LETTER},
        {"ع", UNICODE_LETTER},
        {"٣", UNICODE_NUMBER},
        {"²", UNICODE_NUMBER},
        {"Ⅷ", UNICODE_NUMBER},
        {"\u0301", UNICODE_MARK},
        {"\u093e", UNICODE_MARK}, // a vowel sign of Devanagari
        {"\u200c", UNICODE_JOINER},
        {"\u200d", UNICODE_JOINER},
        {"\u00a0", UNICODE_INVISIBLE},
        {"\u3000", UNICODE_INVISIBLE},
        {"\u2028", UNICODE_INVISIBLE},
        {"\xc2\x85", UNICODE_INVISIBLE},
        {"\u00ad", UNICODE_INVISIBLE},
        {"\u200b", UNICODE_INVISIBLE},
        {"\u202e", UNICODE_INVISIBLE},
        {"\u2060", UNICODE_INVISIBLE},
        {"\ufeff", UNICODE_INVISIBLE},
        {"\u2800", UNICODE_INVISIBLE},
        {"\u3164", UNICODE_INVISIBLE}, // a letter that shows nothing
        {"\ufe0f", UNICODE_INVISIBLE}, // a mark that shows nothing
        {"\U000e0041", UNICODE_INVISIBLE},
        {"，", UNICODE_OTHER},
        {"。", UNICODE_OTHER},
        {"’", UNICODE_OTHER},
        {"…", UNICODE_OTHER},
        {"😀", UNICODE_OTHER},
        {"\ue000", UNICODE_OTHER},
        {"\xff", UNICODE_OTHER},
        {"\xe2\x80", UNICODE_OTHER},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t length;
        size_t whole = strlen(cases[i].text);
        assert_int_equal(unicode_kind_of(cases[i].text, whole, &length), cases[i].kind);
        assert_int_equal(length, text_is_utf8(cases[i].text, whole) ? whole : 1);
    }
}

static void test_blank(void **state)
{
    static const char *const blank[] = {
        "",
        " ",
        "\t\n\v\f\r ",
        "\x01\x7f",
        "\xc2\x85\u00a0",
        "\u2003\u3000",
        "\u200b",
        "\u2060",
        "\ufeff",
        "\u00ad",
        "\u2800",
        "\u3164\u115f",
        "\u034f",
        "\ufe0f",
        "\u200d",
        "\u180e",
        "\u202e \u202c",
        "\u2028\u2029",
        "\U0001d159",
        "\U000e0001\U000e0020",
    };
    static const char *const shown[] = {
        "  x ", "\u200bx", "\u0301", "👩\u200d👩\u200d👧", "\u2764\ufe0f", "\u200b😀",
        "।",    "\ue000",  "-",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(blank); i++)
        assert_true(unicode_is_blank(blank[i], strlen(blank[i])));
    for (size_t i = 0; i < COUNT(shown); i++)
        assert_false(unicode_is_blank(shown[i], strlen(shown[i])));
}

static void test_prefixes(void **state)
{
    static const struct {
        const char *text;
        size_t max;
        const char *prefix;
    } cases[] = {
        {"", 3, ""},
        {"abc", 0, ""},
        {"abc", 3, "abc"},
        {"abcd", 3, "abc"},
        {"aé€😀b", 4, "aé€😀"},
        {"a\r\nb", 2, "a"},
        {"ae\u0301b", 2, "a"},
        {"ae\u0301b", 3, "ae\u0301"},
        {"a👩\u200d👩\u200d👧b", 3, "a"}, // a family
        {"a👩\u200d👩\u200d👧b", 5, "a"},
        {"a👩\u200d👩\u200d👧b", 6, "a👩\u200d👩\u200d👧"},
        {"a👍🏽b", 2, "a"}, // a tone of skin
        {"🇨🇭🇫🇷", 3, "🇨🇭"},  // flags
        {"🇨🇭🇫🇷", 2, "🇨🇭"},
        {"a\u2764\ufe0fb", 2, "a"},
        {"a각b", 2, "a각"},
        {"a\u1100\u1161\u11a8b", 3, "a"}, // a syllable of Hangul
        {"aกำb", 2, "a"},
        {"e\u0301\u0302\u0303\u0304", 3, "e\u0301\u0302"}, // longer than the most
        {"ab", SIZE_MAX, "ab"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t length = unicode_prefix_length(cases[i].text, strlen(cases[i].text), cases[i].max);
        assert_int_equal(length, strlen(cases[i].prefix));
        assert_memory_equal(cases[i].text, cases[i].prefix, length);
    }
}

static void test_folding(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"general-2_x.y", "general-2_x.y"},
        {"GENERAL", "general"},
        {"Éte\u0301", "été"},
        {"ｇｅｎｅｒａｌ", "general"},
        {"ﬁn", "fin"},
        {"²", "2"},
        {"STRAẞE", "strasse"},
        {"straße", "strasse"},
        {"ΟΔΟΣ", "οδοσ"},
        {"οδος", "οδοσ"},
        {"ge\u200bne\u00adral\ufeff\u202e", "general"},
        {"a\u00a0b\u3000c", "a b c"},
        {"\u1112\u1161\u11ab", "한"},
        {"می\u200cروم", "میروم"},
        {"Ⅷ", "viii"},
        {"K", "k"}, // KELVIN SIGN
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        CLEANUP_FREE char *folded = unicode_fold(cases[i][0], strlen(cases[i][0]));
        assert_string_equal(folded, cases[i][1]);
    }
    assert_null(unicode_fold("\xff", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_blank),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_folding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
