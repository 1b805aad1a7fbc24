// SPDX-License-Identifier: Apache-2.0
// Finds the addresses of the server that a URL means: by its host's name, or by asking its
// Sentinels, one after another, for the address of the master. Never blocks, except where noted.
#pragma once

#include "redis_address.h"

struct finder;

// `url` must outlive the finder. Of several Sentinels it asks number `first` (modulo their number)
// first.
NODISCARD int finder_new(const struct url *url, unsigned first, struct finder **ret_finder);
void finder_free(struct finder *finder); // accepts NULL

// Fills in the addresses found. Returns their number, at most ADDRESSES_MAX; 0: ask again in a few
// milliseconds; -ERROR_UNAVAILABLE.
int finder_poll(struct finder *finder, struct address *ret_addresses);
// Waits at most about `timeout_ms`, then returns like finder_poll().
int finder_wait(struct finder *finder, int64_t timeout_ms, struct address *ret_addresses);

// Once addresses are found: the URL, with the host that they are of.
const struct url *finder_server(const struct finder *finder);

const char *finder_problem(const struct finder *finder); // of the failure
