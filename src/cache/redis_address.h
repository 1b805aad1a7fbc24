// SPDX-License-Identifier: Apache-2.0
// Addresses of a Redis URL, and sockets connected to them.
#pragma once

#include "url.h"

#include <stddef.h>
#include <sys/socket.h>

struct address {
    struct sockaddr_storage storage;
    socklen_t length;
};

enum { ADDRESSES_MAX = 8 };

// Resolves names in a thread of its own, so that slow name servers hold up nobody. Numeric hosts
// and Unix paths resolve at once. -ERROR_UNAVAILABLE: too many others are being resolved.
struct lookup;
NODISCARD int lookup_new(const struct url *url, struct lookup **ret_lookup);
// Fills in the addresses found. Returns their number, at most ADDRESSES_MAX; 0 while resolving;
// -ERROR_UNAVAILABLE if there are none.
int lookup_poll(struct lookup *lookup, struct address *ret_addresses);
// Waits at most `timeout_ms` for the lookup, then returns like lookup_poll().
int lookup_wait(struct lookup *lookup, int64_t timeout_ms, struct address *ret_addresses);
void lookup_free(struct lookup *lookup); // accepts NULL; does not wait
// -ERROR_UNAVAILABLE.
NODISCARD int address_connect(const struct address *address);
