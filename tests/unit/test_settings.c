// SPDX-License-Identifier: Apache-2.0
// Every whole number among the settings: accepted at its bounds, refused one beyond, by name, value
// and range. Settings under old names.
#include "app/settings.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct range {
    const char *name;
    int64_t min;
    int64_t max;
};

#define NO_ROW(...)
#define RANGE_ROW(field, name, value, min, max, description) {"TIDINGS_" #name, min, max},
static const struct range ranges[] = {SETTINGS_TABLE(NO_ROW, RANGE_ROW, NO_ROW, NO_ROW)};
enum { RANGES = sizeof ranges / sizeof ranges[0] };

// Reads the settings with `name` set to `number`; the errors in `ret_errors` (256
// bytes).
static int read_with(const char *name, int64_t number, char *ret_errors)
{
    struct settings settings;
    struct buffer errors;
    char text[32];

    snprintf(text, sizeof text, "%" PRId64, number);
    setenv(name, text, 1);
    buffer_init(&errors, 4096);
    int r = settings_read(&settings, &errors);
    snprintf(ret_errors, 256, "%.*s", (int)errors.length, errors.length > 0 ? errors.data : "");
    buffer_done(&errors);
    unsetenv(name);
    return r;
}

static void bounds_are_accepted(void **state)
{
    char errors[256];

    (void)state;
    for (int i = 0; i < RANGES; i++) {
        assert_int_equal(read_with(ranges[i].name, ranges[i].min, errors), 0);
        assert_int_equal(read_with(ranges[i].name, ranges[i].max, errors), 0);
    }
}

static void one_beyond_is_refused_by_name_value_and_range(void **state)
{
    char errors[256];
    char number[32];

    (void)state;
    for (int i = 0; i < RANGES; i++) {
        assert_true(read_with(ranges[i].name, ranges[i].max + 1, errors) < 0);
        snprintf(number, sizeof number, "=%" PRId64, ranges[i].max + 1);
        assert_non_null(strstr(errors, ranges[i].name));
        assert_non_null(strstr(errors, number));
        assert_true(read_with(ranges[i].name, ranges[i].min - 1, errors) < 0);
        snprintf(number, sizeof number, "%" PRId64 " to %" PRId64, ranges[i].min, ranges[i].max);
        assert_non_null(strstr(errors, number));
    }
}

static void help_lists_every_setting(void **state)
{
    struct buffer out;

    (void)state;
    buffer_init(&out, 65536);
    settings_print(&out);
    char *text = buffer_take_text(&out);
    assert_non_null(text);
    for (int i = 0; i < RANGES; i++)
        assert_non_null(strstr(text, ranges[i].name));
    free(text);
}

// A release may have none.
#define RENAMED_NAMES(old, name, release) {"TIDINGS_" #old, "TIDINGS_" #name},
static const char *renamed_names[][2] = {SETTINGS_RENAMED(RENAMED_NAMES){NULL, NULL}};

static void old_names_are_listed_and_lead_to_settings(void **state)
{
    const char *(*names)[2] = renamed_names;
    struct buffer out;
    char line[128];

    (void)state;
    buffer_init(&out, 65536);
    settings_print(&out);
    char *text = buffer_take_text(&out);
    assert_non_null(text);
    for (size_t i = 0; names[i][0]; i++) {
        snprintf(line, sizeof line, "\n  %-36s %s, since ", names[i][0], names[i][1]);
        assert_non_null(strstr(text, line));
        snprintf(line, sizeof line, "\n  %-36s ", names[i][1]);
        assert_non_null(strstr(text, line));
    }
    free(text);
}

static const struct range *range_of(const char *name)
{
    for (int i = 0; i < RANGES; i++)
        if (strcmp(ranges[i].name, name) == 0)
            return &ranges[i];
    fail();
    return NULL;
}

static void old_names_are_read_if_the_new_one_is_unset(void **state)
{
    const char *(*names)[2] = renamed_names;
    char errors[256], least[32];

    (void)state;
    for (size_t i = 0; names[i][0]; i++) {
        const struct range *range = range_of(names[i][1]);
        assert_int_equal(read_with(names[i][0], range->max, errors), 0);
        assert_true(read_with(names[i][0], range->max + 1, errors) < 0);
        assert_non_null(strstr(errors, names[i][0]));
        snprintf(least, sizeof least, "%" PRId64, range->min);
        setenv(names[i][1], least, 1);
        assert_int_equal(read_with(names[i][0], range->max + 1, errors), 0);
        unsetenv(names[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_accepted),
        cmocka_unit_test(one_beyond_is_refused_by_name_value_and_range),
        cmocka_unit_test(help_lists_every_setting),
        cmocka_unit_test(old_names_are_listed_and_lead_to_settings),
        cmocka_unit_test(old_names_are_read_if_the_new_one_is_unset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
