// SPDX-License-Identifier: Apache-2.0
// Admission of bodies: whether to read a body, and whom to charge for it.
#pragma once

#include "exchange.h"

// Decides on the announced body. Then: BODY, or ASKED if the decision comes later; the exchange is
// then resumed. Negative: refused; the request may already hold the reply.
NODISCARD int exchange_ask(struct exchange *exchange);
// Evaluates the decision after the wait. Returns like exchange_ask().
NODISCARD int exchange_ask_end(struct exchange *exchange);
// Stores a piece of the body. -ERROR_REQUEST_TOO_LARGE, -ERROR_RATELIMITED, -ERROR_BUSY.
NODISCARD int exchange_body_add(struct exchange *exchange, const char *data, size_t size);
