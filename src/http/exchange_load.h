// SPDX-License-Identifier: Apache-2.0
// Parses the arguments of a call: on the loop if that is quick, else on the server's parser thread.
#pragma once

#include "exchange.h"

// The request_load_fn of exchanges.
void exchange_load(struct request *request);
