// SPDX-License-Identifier: Apache-2.0
// What a request goes through, whoever reads its connection. MHD_NO: the connection must end. In
// the state DETACHED the reply is on its way already.
#pragma once

#include "exchange.h"

// Keeps what exchange->head says, for the reply and for handlers. -ERROR_MEMORY.
NODISCARD int exchange_keep_head(struct exchange *exchange);
// Refuses a request whose head was malformed.
NODISCARD enum MHD_Result exchange_refuse(struct exchange *exchange, const char *reason);
// Goes on with a good head: up to letting the body in or refusing it.
NODISCARD enum MHD_Result exchange_begin(struct exchange *exchange);
// The answer to exchange_ask() came.
NODISCARD enum MHD_Result exchange_admit_end(struct exchange *exchange);
// Takes a piece of the body.
NODISCARD enum MHD_Result exchange_take(struct exchange *exchange, const char *data, size_t *size);
// All of the request is there.
NODISCARD enum MHD_Result exchange_answer(struct exchange *exchange);
// Sends the reply, if the request holds one.
NODISCARD enum MHD_Result exchange_queue(struct exchange *exchange);
