// SPDX-License-Identifier: Apache-2.0
// Requests with a chunked body, past libmicrohttpd.
#pragma once

#include "exchange.h"

// Takes a request with a chunked body, whose head is read, away from libmicrohttpd.
NODISCARD enum MHD_Result exchange_take_over(struct exchange *exchange);
