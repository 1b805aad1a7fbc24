// SPDX-License-Identifier: Apache-2.0
// Parses the arguments of a call from its query and body.
#pragma once

#include "exchange.h"

// Parses the query and, if the head has no token, as much of the body as is needed to find one.
NODISCARD int exchange_find_token(struct exchange *exchange);
// The request_load_fn of exchanges.
void exchange_load(struct request *request);
