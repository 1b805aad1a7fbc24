// SPDX-License-Identifier: Apache-2.0
// Compresses outgoing replies.
#pragma once

#include "exchange.h"

// The request_send_fn of exchanges: compresses the reply if allowed, then continues.
void exchange_send(struct request *request);
