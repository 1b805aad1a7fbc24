// SPDX-License-Identifier: Apache-2.0
// Which addresses an events_url may lead to.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/address.h"

static bool is_public(const char *text)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &ipv4.sin_addr) == 1)
        return address_is_public((const struct sockaddr *)&ipv4);
    assert_int_equal(inet_pton(AF_INET6, text, &ipv6.sin6_addr), 1);
    return address_is_public((const struct sockaddr *)&ipv6);
}

static void public_ones_are_public(void **state)
{
    static const char *const texts[] = {
        "1.1.1.1",       "9.255.255.255", "11.0.0.0",        "100.63.255.255",  "100.128.0.0",
        "126.0.0.1",     "128.0.0.1",     "169.253.255.255", "172.15.255.255",  "172.32.0.0",
        "192.167.255.1", "192.169.0.0",   "198.17.255.255",  "198.20.0.0",      "223.255.255.255",
        "2600::1",       "2a00:1450::1",  "2606:4700::1111", "2001:4860::8888",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!is_public(texts[i]))
            fail_msg("%s is public", texts[i]);
}

static void others_are_not(void **state)
{
    static const char *const texts[] = {
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:1.1.1.1",
        "::7f00:1",
        "64:ff9b::7f00:1",
        "fc00::1",
        "fd12::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (is_public(texts[i]))
            fail_msg("%s is not public", texts[i]);
}

static void other_families_are_not(void **state)
{
    const struct sockaddr local = {.sa_family = AF_UNIX};
    (void)state;
    assert_false(address_is_public(&local));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public_ones_are_public),
        cmocka_unit_test(others_are_not),
        cmocka_unit_test(other_families_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
