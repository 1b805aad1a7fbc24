// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "call/transport.h"

// Replaces the reply, which says whether the call succeeded, by the plain word for it.
void webhook_reply_write(struct request *request);
