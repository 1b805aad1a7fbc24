// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

// Whether an address is publicly routable: not loopback, private, link-local, shared, reserved or
// multicast, and not a wrapper that may lead to such an address (IPv4 in IPv6, 6to4, Teredo,
// NAT64). Any thread.
bool address_is_public(const struct sockaddr *address);
