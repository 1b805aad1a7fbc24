// SPDX-License-Identifier: Apache-2.0
// The texts that clients of unread.sync give back.
#include "../../src/api/sync_token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void a_token_is_read_as_it_was_printed(void **state)
{
    const struct sync_token token = {.xid = 12, .seconds = INT64_MAX, .era = 3};
    struct sync_token again;
    char text[SYNC_TOKEN_SIZE];

    (void)state;
    sync_token_print(&token, text);
    assert_string_equal(text, "s1.12.9223372036854775807.3");
    assert_true(sync_token_parse(text, &again));
    assert_int_equal(again.xid, 12);
    assert_int_equal(again.seconds, INT64_MAX);
    assert_int_equal(again.era, 3);
}

static void later_releases_may_append(void **state)
{
    struct sync_token token;

    (void)state;
    assert_true(sync_token_parse("s1.1.2.3.4.5", &token));
    assert_int_equal(token.era, 3);
    assert_true(sync_token_parse("s2.7", &token)); // of long ago
    assert_int_equal(token.xid, 0);
    assert_int_equal(token.seconds, 0);
}

static void other_texts_are_no_tokens(void **state)
{
    static const char *const bad[] = {"",          "s",          "s1",       "s1.",
                                      "s1.1",      "s1.1.2",     "s1.1.2.",  "s1.1.2.3.",
                                      "s1.-1.2.3", "s1.01.2.3",  "t1.1.2.3", " s1.1.2.3",
                                      "s1.1.2.3 ", "s1.1.2.0x3", "s0.1.2.3"};
    struct sync_token token;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(sync_token_parse(bad[i], &token));
}

static void a_cursor_is_read_as_it_was_printed(void **state)
{
    const struct sync_page page = {.token = {1, 2, 3}, .unread = true, .updated = 4, .id = "C1AB"};
    struct sync_page again;
    char text[SYNC_PAGE_SIZE];

    (void)state;
    sync_page_print(&page, text);
    assert_string_equal(text, "1.2.3.1.4.C1AB");
    assert_true(sync_page_parse(text, &again));
    assert_memory_equal(&again.token, &page.token, sizeof page.token);
    assert_true(again.unread);
    assert_int_equal(again.updated, 4);
    assert_string_equal(again.id, "C1AB");
}

// The longest numbers and id fit in SYNC_PAGE_SIZE.
static void the_longest_cursor(void **state)
{
    const struct sync_page page = {.token = {INT64_MAX, INT64_MAX, INT64_MAX},
                                   .updated = INT64_MAX,
                                   .id = "C1234567890123456789"};
    struct sync_page again;
    char text[SYNC_PAGE_SIZE];

    (void)state;
    sync_page_print(&page, text);
    assert_true(strlen(text) < SYNC_PAGE_SIZE - 1);
    assert_true(sync_page_parse(text, &again));
    assert_string_equal(again.id, page.id);
    assert_false(again.unread);
}

static void cursors_of_later_releases(void **state)
{
    struct sync_page page;

    (void)state;
    assert_true(sync_page_parse("1.2.3.0.4.G1AB.5.6", &page));
    assert_string_equal(page.id, "G1AB");
}

static void other_texts_are_no_cursors(void **state)
{
    static const char *const bad[] = {
        "",
        "1.2.3.0.4",
        "1.2.3.0.4.",
        "1.2.3.2.4.C1AB",
        "1.2.3.-1.4.C1AB",
        "1.2.3.0.4.U1AB",
        "1.2.3.0.4.C",
        "1.2.3.0.4.C1AB.x",
        "1.2.3.0.4.C12345678901234567890",
        "9223372036854775808.2.3.0.4.C1AB",
        "1..3.0.4.C1AB",
    };
    struct sync_page page;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(sync_page_parse(bad[i], &page));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_read_as_it_was_printed),
        cmocka_unit_test(later_releases_may_append),
        cmocka_unit_test(other_texts_are_no_tokens),
        cmocka_unit_test(a_cursor_is_read_as_it_was_printed),
        cmocka_unit_test(the_longest_cursor),
        cmocka_unit_test(cursors_of_later_releases),
        cmocka_unit_test(other_texts_are_no_cursors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
