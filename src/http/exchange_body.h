// SPDX-License-Identifier: Apache-2.0
// The arguments of a call, from its query and body.
#pragma once

#include "exchange.h"

// Reads the query and, when the head has no token, as much of the body as tells one.
NODISCARD int exchange_find_token(struct exchange *exchange);
// request_load_fn of exchanges.
void exchange_load(struct request *request);
