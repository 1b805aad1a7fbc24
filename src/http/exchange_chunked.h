// SPDX-License-Identifier: Apache-2.0
// Requests with chunked bodies, which bypass libmicrohttpd.
#pragma once

#include "exchange.h"

// Takes a request with a chunked body away from libmicrohttpd. Its head has been read.
NODISCARD enum MHD_Result exchange_take_over(struct exchange *exchange);
