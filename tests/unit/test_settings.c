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
static const struct range ranges[] = {SETTINGS_TABLE(NO_ROW, RANGE_ROW, NO_ROW)};
enum { RANGES = sizeof ranges / sizeof ranges[0] };

// Reads the settings with `name` set to `number`; the complaint's text in `ret_complaint` (256
// bytes).
static int read_with(const char *name, int64_t number, char *ret_complaint)
{
    struct settings settings;
    struct buffer complaint;
    char text[32];

    snprintf(text, sizeof text, "%" PRId64, number);
    setenv(name, text, 1);
    buffer_init(&complaint, 4096);
    int r = settings_read(&settings, &complaint);
    snprintf(ret_complaint, 256, "%.*s", (int)complaint.length,
             complaint.length > 0 ? complaint.data : "");
    buffer_done(&complaint);
    unsetenv(name);
    return r;
}

static void bounds_are_accepted(void **state)
{
    char complaint[256];

    (void)state;
    for (int i = 0; i < RANGES; i++) {
        assert_int_equal(read_with(ranges[i].name, ranges[i].min, complaint), 0);
        assert_int_equal(read_with(ranges[i].name, ranges[i].max, complaint), 0);
    }
}

static void one_beyond_is_refused_by_name_value_and_range(void **state)
{
    char complaint[256];
    char number[32];

    (void)state;
    for (int i = 0; i < RANGES; i++) {
        assert_true(read_with(ranges[i].name, ranges[i].max + 1, complaint) < 0);
        snprintf(number, sizeof number, "=%" PRId64, ranges[i].max + 1);
        assert_non_null(strstr(complaint, ranges[i].name));
        assert_non_null(strstr(complaint, number));
        assert_true(read_with(ranges[i].name, ranges[i].min - 1, complaint) < 0);
        snprintf(number, sizeof number, "%" PRId64 " to %" PRId64, ranges[i].min, ranges[i].max);
        assert_non_null(strstr(complaint, number));
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

static void an_old_name_is_read_where_the_new_one_is_unset(void **state)
{
    struct settings settings;
    struct buffer complaint;

    (void)state;
    buffer_init(&complaint, 4096);
    setenv("TIDINGS_PUSH_QUEUE_MAX", "7", 1);
    setenv("TIDINGS_PUSH_PRIVATE", "true", 1);
    setenv("TIDINGS_EVENTS_API_QUEUE_MAX", "", 1); // as good as unset
    assert_int_equal(settings_read(&settings, &complaint), 0);
    assert_int_equal(settings.events_api_queue_max, 7);
    assert_true(settings.events_api_private);
    setenv("TIDINGS_EVENTS_API_QUEUE_MAX", "8", 1);
    setenv("TIDINGS_EVENTS_API_PRIVATE", "false", 1);
    assert_int_equal(settings_read(&settings, &complaint), 0);
    assert_int_equal(settings.events_api_queue_max, 8);
    assert_false(settings.events_api_private);
    unsetenv("TIDINGS_PUSH_QUEUE_MAX");
    unsetenv("TIDINGS_PUSH_PRIVATE");
    unsetenv("TIDINGS_EVENTS_API_QUEUE_MAX");
    unsetenv("TIDINGS_EVENTS_API_PRIVATE");
    buffer_done(&complaint);
}

static void a_bad_value_is_refused_by_the_name_that_was_used(void **state)
{
    char complaint[256];

    (void)state;
    assert_true(read_with("TIDINGS_PUSH_PARALLEL", 0, complaint) < 0);
    assert_non_null(strstr(complaint, "TIDINGS_PUSH_PARALLEL=0"));
}

#define RENAMED_NAMES(old, name, release) {"TIDINGS_" #old, "TIDINGS_" #name},
static void old_names_are_listed_and_lead_to_settings(void **state)
{
    static const char *const names[][2] = {SETTINGS_RENAMED(RENAMED_NAMES)};
    struct buffer out;
    char line[128];

    (void)state;
    buffer_init(&out, 65536);
    settings_print(&out);
    char *text = buffer_take_text(&out);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(line, sizeof line, "\n  %-36s %s, since ", names[i][0], names[i][1]);
        assert_non_null(strstr(text, line));
        snprintf(line, sizeof line, "\n  %-36s ", names[i][1]);
        assert_non_null(strstr(text, line));
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_accepted),
        cmocka_unit_test(one_beyond_is_refused_by_name_value_and_range),
        cmocka_unit_test(help_lists_every_setting),
        cmocka_unit_test(an_old_name_is_read_where_the_new_one_is_unset),
        cmocka_unit_test(a_bad_value_is_refused_by_the_name_that_was_used),
        cmocka_unit_test(old_names_are_listed_and_lead_to_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
