// SPDX-License-Identifier: Apache-2.0
// Functions of push apps for other methods.
#pragma once

#include "invocation.h"

// Queries the platform of the named push app in the caller's workspace: `fn` gets a row with its
// name, or no row.
void push_app_ask(struct invocation *invocation, const char *name, invocation_rows_fn *fn);

// Reads the argument device_id, like take_text() (devices.c).
NODISCARD bool take_device_id(struct invocation *invocation, const char **ret_id);
