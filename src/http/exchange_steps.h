// SPDX-License-Identifier: Apache-2.0
// The steps of a request. Each leaves the exchange in the state that tells what comes next.
#pragma once

#include "exchange.h"

// Evaluates exchange->head for the reply and for handlers. -ERROR_MEMORY.
NODISCARD int exchange_store_head(struct exchange *exchange);
// Starts a request with a valid head. Then: PAGE, BODY, ASKED, or REPLY if the body is refused.
void exchange_begin(struct exchange *exchange);
// Continues what was ASKED. Then: BODY or REPLY.
void exchange_admit_end(struct exchange *exchange);
// Takes a piece of the body. Then: BODY or REPLY.
void exchange_take(struct exchange *exchange, const char *data, size_t size);
// Called when the request is complete: starts the call. Then: SUSPENDED or REPLY.
void exchange_answer(struct exchange *exchange);
