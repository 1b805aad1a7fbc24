// SPDX-License-Identifier: Apache-2.0
// Objects of channels: what is kept, replaced, too long, and pushed out.
#include "../../src/api/objects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES_MAX = 64 * 1024, PART = BYTES_MAX / 16, LONG = 3000, MANY = 100 };

static char text[BYTES_MAX];

static int set_up(void **state)
{
    struct objects *objects;

    memset(text, 'x', sizeof text);
    assert_int_equal(objects_new(BYTES_MAX, &objects), 0);
    *state = objects;
    return 0;
}

static int tear_down(void **state)
{
    objects_free(*state);
    return 0;
}

static void keeps_the_last(void **state)
{
    struct objects *objects = *state;
    const char *version = NULL;

    assert_null(objects_find(objects, "C1", &version));
    objects_keep(objects, "C1", "1.5", "one and more", 3);
    assert_string_equal(objects_find(objects, "C1", &version), "one");
    assert_string_equal(version, "1.5");
    objects_keep(objects, "C1", "2.5", "two", 3);
    assert_string_equal(objects_find(objects, "C1", &version), "two");
    assert_string_equal(version, "2.5");
    assert_null(objects_find(objects, "C2", &version));
}

// The longest that is kept, and one byte more.
static void too_long(void **state)
{
    struct objects *objects = *state;
    const char *version;
    size_t length = PART;

    while (!objects_find(objects, "C1", &version) && --length > 0)
        objects_keep(objects, "C1", "1", text, length);
    assert_in_range(length, PART - 256, PART - 1);
    objects_keep(objects, "C1", "2", text, length + 1);
    assert_null(objects_find(objects, "C1", &version));
}

static void in_use_last_stays_longest(void **state)
{
    struct objects *objects = *state;
    const char *version;
    char id[16];
    int kept = 0;

    objects_keep(objects, "CFIRST", "1", text, LONG);
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "C%d", i);
        objects_keep(objects, id, "1", text, LONG);
        assert_non_null(objects_find(objects, "CFIRST", &version));
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "C%d", i);
        kept += objects_find(objects, id, &version) != NULL;
    }
    assert_in_range(kept, 18, BYTES_MAX / LONG - 1);
    assert_null(objects_find(objects, "C0", &version));
    assert_non_null(objects_find(objects, id, &version));
}

static void nothing_at_all(void **state)
{
    struct objects *objects;
    const char *version;

    (void)state;
    assert_int_equal(objects_new(0, &objects), 0);
    objects_keep(objects, "C1", "1", "x", 1);
    assert_null(objects_find(objects, "C1", &version));
    objects_free(objects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps_the_last, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_long, set_up, tear_down),
        cmocka_unit_test_setup_teardown(in_use_last_stays_longest, set_up, tear_down),
        cmocka_unit_test(nothing_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
