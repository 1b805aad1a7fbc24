// SPDX-License-Identifier: Apache-2.0
// Checks the scope of a call.
#pragma once

#include "invocation.h"

// Replies that the scope is missing.
void scope_refuse(struct invocation *invocation);

// Calls the method's function, once its arguments are read: at once, or after the type of the
// channel is known, if the token has the scope only in some. Refuses otherwise.
void scope_check(struct invocation *invocation);
