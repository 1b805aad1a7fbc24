// SPDX-License-Identifier: Apache-2.0
// Compresses replies on their way out.
#pragma once

#include "exchange.h"

// request_send_fn of exchanges: compresses the reply, if it may be, and goes on.
void exchange_send(struct request *request);
