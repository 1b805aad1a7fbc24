// SPDX-License-Identifier: Apache-2.0
// Addresses of a Redis URL, and sockets to them.
#pragma once

#include "url.h"

#include <stddef.h>
#include <sys/socket.h>

struct address {
    struct sockaddr_storage storage;
    socklen_t length;
};

enum { ADDRESSES_MAX = 8 };

// Looks names up in the background (glibc's resolver thread); numeric hosts and Unix paths are
// answered at once.
struct lookup;
NODISCARD int lookup_new(const struct url *url, struct lookup **ret_lookup);
// How many addresses were found and filled in (at most ADDRESSES_MAX); 0 while the search goes on;
// -ERROR_UNAVAILABLE when there are none.
int lookup_poll(struct lookup *lookup, struct address *ret_addresses);
// Waits for the search to end, at most `timeout_ms`, then answers as lookup_poll().
int lookup_wait(struct lookup *lookup, int64_t timeout_ms, struct address *ret_addresses);
void lookup_free(struct lookup *lookup); // takes NULL; waits for what cannot be cancelled

// A non-blocking socket on its way to `address`; owned by the caller. -ERROR_UNAVAILABLE.
NODISCARD int address_connect(const struct address *address);
