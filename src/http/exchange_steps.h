// SPDX-License-Identifier: Apache-2.0
// The steps of every request, whoever reads its connection. MHD_NO: the connection must be closed.
// In the state DETACHED, the reply is on its way already.
#pragma once

#include "exchange.h"

// Evaluates exchange->head for the reply and for handlers. -ERROR_MEMORY.
NODISCARD int exchange_store_head(struct exchange *exchange);
// Rejects a request with a malformed head.
NODISCARD enum MHD_Result exchange_refuse(struct exchange *exchange, const char *reason);
// Starts a request with a valid head, up to admitting or refusing its body.
NODISCARD enum MHD_Result exchange_begin(struct exchange *exchange);
// Continues after the decision that exchange_ask() waited for.
NODISCARD enum MHD_Result exchange_admit_end(struct exchange *exchange);
// Takes a piece of the body.
NODISCARD enum MHD_Result exchange_take(struct exchange *exchange, const char *data, size_t *size);
// Called when the request is complete: starts the call, or sends the page.
NODISCARD enum MHD_Result exchange_answer(struct exchange *exchange);
// Sends the reply, if the request holds one.
NODISCARD enum MHD_Result exchange_queue(struct exchange *exchange);
