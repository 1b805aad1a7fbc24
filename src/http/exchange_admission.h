// SPDX-License-Identifier: Apache-2.0
// Whether a body is let in, and on whose account.
#pragma once

#include "exchange.h"

// Asks whether the body that the head announces is let in. Negative: it is not, and the request may
// hold the reply already. In the state ASKED the answer comes later: the exchange is resumed
// then.
NODISCARD int exchange_ask(struct exchange *exchange);
// What came of it, the same way.
NODISCARD int exchange_ask_end(struct exchange *exchange);
// Keeps a piece of the body. -ERROR_REQUEST_TOO_LARGE, -ERROR_RATELIMITED, -ERROR_BUSY.
NODISCARD int exchange_body_add(struct exchange *exchange, const char *data, size_t size);
