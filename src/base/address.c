// SPDX-License-Identifier: Apache-2.0
// Distinguishes public addresses from private and reserved ones, which an events_url must not
// reach.
#include "base/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct range {
    uint32_t network;
    int bits;
};

// https://www.iana.org/assignments/iana-ipv4-special-registry, plus multicast.
static const struct range special[] = {
    {0x00000000, 8},  // this network
    {0x0a000000, 8},  // private
    {0x64400000, 10}, // shared
    {0x7f000000, 8},  // loopback
    {0xa9fe0000, 16}, // link-local
    {0xac100000, 12}, // private
    {0xc0000000, 24}, // protocol assignments
    {0xc0000200, 24}, // documentation
    {0xc0586300, 24}, // 6to4 relays
    {0xc0a80000, 16}, // private
    {0xc6120000, 15}, // benchmarks
    {0xc6336400, 24}, // documentation
    {0xcb007100, 24}, // documentation
    {0xe0000000, 3},  // multicast, reserved, broadcast
};

static bool ipv4_is_public(uint32_t address)
{
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        if (((address ^ special[i].network) >> (32 - special[i].bits)) == 0)
            return false;
    return true;
}

// Global unicast (2000::/3), except Teredo and other protocol assignments (2001::/23),
// documentation and 6to4.
static bool ipv6_is_public(const uint8_t *address)
{
    static const uint8_t documentation[] = {0x20, 0x01, 0x0d, 0xb8};
    if (address[0] >> 5 != 1)
        return false;
    if (address[0] == 0x20 && (address[1] == 0x02 || (address[1] == 0x01 && address[2] < 2)))
        return false;
    if (address[0] == 0x3f && address[1] == 0xff && address[2] < 0x10)
        return false;
    return memcmp(address, documentation, sizeof documentation) != 0;
}

bool address_is_public(const struct sockaddr *address)
{
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
    switch (address->sa_family) {
    case AF_INET:
        memcpy(&ipv4, address, sizeof ipv4);
        return ipv4_is_public(ntohl(ipv4.sin_addr.s_addr));
    case AF_INET6:
        memcpy(&ipv6, address, sizeof ipv6);
        return ipv6_is_public(ipv6.sin6_addr.s6_addr);
    default:
        return false;
    }
}
