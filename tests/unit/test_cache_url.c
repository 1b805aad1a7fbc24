// SPDX-License-Identifier: Apache-2.0
#include "../../src/cache/url.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct url parsed(const char *text)
{
    struct url url;
    assert_int_equal(url_parse(text, &url), 0);
    return url;
}

static void test_host_and_port(void **state)
{
    (void)state;
    struct url url = parsed("redis://cache.example:6380");
    assert_string_equal(url.host, "cache.example");
    assert_string_equal(url.port, "6380");
    assert_string_equal(url.password, "");
    assert_int_equal(url.database, 0);
}

static void test_defaults(void **state)
{
    (void)state;
    struct url url = parsed("redis://127.0.0.1/");
    assert_string_equal(url.host, "127.0.0.1");
    assert_string_equal(url.port, "6379");
}

static void test_login_and_database(void **state)
{
    (void)state;
    struct url url = parsed("redis://ann:p%40ss%3Aw%2Ford@h:1/15");
    assert_string_equal(url.user, "ann");
    assert_string_equal(url.password, "p@ss:w/ord");
    assert_string_equal(url.host, "h");
    assert_int_equal(url.database, 15);
    url = parsed("redis://:secret@h");
    assert_string_equal(url.user, "");
    assert_string_equal(url.password, "secret");
}

static void test_ipv6(void **state)
{
    (void)state;
    struct url url = parsed("redis://[::1]:7000");
    assert_string_equal(url.host, "::1");
    assert_string_equal(url.port, "7000");
}

static void test_unix_path(void **state)
{
    (void)state;
    struct url url = parsed("unix:///run/re@dis.sock");
    assert_string_equal(url.path, "/run/re@dis.sock");
    assert_string_equal(url.host, "");
    assert_string_equal(url.password, "");
    url = parsed("unix://ann:p%2Fw@/run/redis.sock");
    assert_string_equal(url.path, "/run/redis.sock");
    assert_string_equal(url.user, "ann");
    assert_string_equal(url.password, "p/w");
}

static void test_tls(void **state)
{
    (void)state;
    struct url url = parsed("rediss://ann:x@h/2?cacert=/a/b%26c&key=/k&cert=/c?");
    assert_true(url.tls);
    assert_string_equal(url.host, "h");
    assert_string_equal(url.port, "6379");
    assert_int_equal(url.database, 2);
    assert_string_equal(url.cacert, "/a/b&c");
    assert_string_equal(url.cert, "/c?");
    assert_string_equal(url.key, "/k");
    url = parsed("rediss://h:1");
    assert_true(url.tls);
    assert_string_equal(url.cacert, "");
    assert_false(parsed("redis://h").tls);
}

static void test_sentinels(void **state)
{
    (void)state;
    struct url url = parsed("redis+sentinel://ann:x@a,[::1]:7,c:9/ma%2Fin/3"
                            "?sentinel_user=sue&sentinel_password=p%40");
    assert_string_equal(url.host, "");
    assert_string_equal(url.master, "ma/in");
    assert_string_equal(url.password, "x");
    assert_int_equal(url.database, 3);
    assert_int_equal(url.sentinels, 3);
    assert_string_equal(url.sentinel[0].port, "26379");
    struct url second;
    url_sentinel(&url, 1, &second);
    assert_string_equal(second.host, "::1");
    assert_string_equal(second.port, "7");
    assert_string_equal(second.user, "sue");
    assert_string_equal(second.password, "p@");
    assert_string_equal(second.master, "");
    assert_int_equal(second.database, 0);
    assert_int_equal(parsed("redis+sentinel://1,2,3,4,5,6,7,8/m").sentinels, URL_SENTINELS_MAX);
}

static void test_sentinels_with_tls(void **state)
{
    (void)state;
    struct url url = parsed("rediss+sentinel://a/m?cacert=/a&cert=/c&key=/k");
    struct url first;
    url_sentinel(&url, 0, &first);
    assert_true(url.tls && first.tls);
    assert_string_equal(first.cacert, "/a");
    assert_string_equal(first.cert, "/c");
    assert_string_equal(first.key, "/k");
}

static void expect_login(const char *text, const char *const *expected, int count)
{
    const char *texts[URL_LOGIN_TEXTS];
    struct url url = parsed(text);
    assert_int_equal(url_login(&url, texts), count);
    for (int i = 0; i < count; i++)
        assert_string_equal(texts[i], expected[i]);
}

static void test_login_command(void **state)
{
    (void)state;
    expect_login("redis://h", NULL, 0);
    expect_login("redis://:x@h", (const char *[]){"AUTH", "x"}, 2);
    expect_login("redis://ann:x@h", (const char *[]){"AUTH", "ann", "x"}, 3);
    expect_login("redis://ann:@h", (const char *[]){"AUTH", "ann", ""}, 3);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "127.0.0.1:6379",
                                      "rediss://",
                                      "rediss://h?",
                                      "rediss://h?cacert=",
                                      "rediss://h?cacert=/a&cacert=/b",
                                      "rediss://h?cacert=/a&",
                                      "rediss://h?cert=/a",
                                      "rediss://h?key=/a",
                                      "rediss://h?ca=/a",
                                      "rediss://h#a",
                                      "redis+cluster://h",
                                      "redis+sentinel://h",
                                      "redis+sentinel://h/",
                                      "redis+sentinel://h,/main",
                                      "redis+sentinel://h:0/main",
                                      "redis+sentinel://h/main/x",
                                      "redis+sentinel://h/main?cacert=/a",
                                      "redis+sentinel://h/main?sentinel_user=a",
                                      "redis+sentinel://1,2,3,4,5,6,7,8,9/main",
                                      "redis://h?sentinel_password=a",
                                      "redis://",
                                      "redis://h:0",
                                      "redis://h:",
                                      "redis://h:65536",
                                      "redis://h:1/x",
                                      "redis://h?cacert=/a",
                                      "redis://u@h",
                                      "unix://run",
                                      "unix://run/a",
                                      "unix://ann@/run",
                                      "redis://[::1",
                                      "redis://[::1]x",
                                      "redis://:%zz@h",
                                      "redis://:%00@h",
                                      "redis://h:6379/-1"};
    struct url url;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(url_parse(bad[i], &url) < 0);
}

static void test_too_long(void **state)
{
    (void)state;
    char text[600] = "redis://";
    memset(text + 8, 'a', 500);
    struct url url;
    assert_true(url_parse(text, &url) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_and_port),      cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_login_and_database), cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_unix_path),          cmocka_unit_test(test_refused),
        cmocka_unit_test(test_too_long),           cmocka_unit_test(test_tls),
        cmocka_unit_test(test_login_command),      cmocka_unit_test(test_sentinels),
        cmocka_unit_test(test_sentinels_with_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
