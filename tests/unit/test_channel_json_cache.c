// SPDX-License-Identifier: Apache-2.0
// Objects of channels: what is kept, replaced, too long, and pushed out.
#include "../../src/api/channel_json_cache.h"
#include "base/metrics.h"

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
    struct channel_json_cache *channel_json;

    memset(text, 'x', sizeof text);
    assert_int_equal(channel_json_cache_new(BYTES_MAX, &channel_json), 0);
    *state = channel_json;
    return 0;
}

static int tear_down(void **state)
{
    channel_json_cache_free(*state);
    return 0;
}

static void keeps_the_last(void **state)
{
    struct channel_json_cache *channel_json = *state;
    const char *version = NULL;

    assert_null(channel_json_cache_find(channel_json, "C1", &version));
    channel_json_cache_put(channel_json, "C1", "1.5", "one and more", 3);
    assert_string_equal(channel_json_cache_find(channel_json, "C1", &version), "one");
    assert_string_equal(version, "1.5");
    channel_json_cache_put(channel_json, "C1", "2.5", "two", 3);
    assert_string_equal(channel_json_cache_find(channel_json, "C1", &version), "two");
    assert_string_equal(version, "2.5");
    assert_null(channel_json_cache_find(channel_json, "C2", &version));
}

// The longest that is kept, and one byte more.
static void too_long(void **state)
{
    struct channel_json_cache *channel_json = *state;
    const char *version;
    size_t length = PART;

    while (!channel_json_cache_find(channel_json, "C1", &version) && --length > 0)
        channel_json_cache_put(channel_json, "C1", "1", text, length);
    assert_in_range(length, PART - 256, PART - 1);
    int64_t dropped = metric_value(METRIC_CHANNEL_JSON_DROPPED);
    channel_json_cache_put(channel_json, "C1", "2", text, length);
    assert_int_equal(metric_value(METRIC_CHANNEL_JSON_DROPPED), dropped);
    channel_json_cache_put(channel_json, "C1", "3", text, length + 1);
    assert_null(channel_json_cache_find(channel_json, "C1", &version));
    assert_int_equal(metric_value(METRIC_CHANNEL_JSON_DROPPED), dropped + 1);
}

static void in_use_last_stays_longest(void **state)
{
    struct channel_json_cache *channel_json = *state;
    const char *version;
    char id[16];
    int kept = 0;
    int64_t dropped = metric_value(METRIC_CHANNEL_JSON_DROPPED);

    channel_json_cache_put(channel_json, "CFIRST", "1", text, LONG);
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "C%d", i);
        channel_json_cache_put(channel_json, id, "1", text, LONG);
        assert_non_null(channel_json_cache_find(channel_json, "CFIRST", &version));
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "C%d", i);
        kept += channel_json_cache_find(channel_json, id, &version) != NULL;
    }
    assert_in_range(kept, 18, BYTES_MAX / LONG - 1);
    assert_int_equal(metric_value(METRIC_CHANNEL_JSON_DROPPED), dropped + MANY - kept);
    assert_null(channel_json_cache_find(channel_json, "C0", &version));
    assert_non_null(channel_json_cache_find(channel_json, id, &version));
}

static void nothing_at_all(void **state)
{
    struct channel_json_cache *channel_json;
    const char *version;

    (void)state;
    assert_int_equal(channel_json_cache_new(0, &channel_json), 0);
    channel_json_cache_put(channel_json, "C1", "1", "x", 1);
    assert_null(channel_json_cache_find(channel_json, "C1", &version));
    channel_json_cache_free(channel_json);
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
