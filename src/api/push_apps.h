// SPDX-License-Identifier: Apache-2.0
// What other methods ask of push apps.
#pragma once

#include "invocation.h"

// Asks for the platform of the push app of that name in the caller's workspace: `fn` gets a row
// with its name, or none.
void push_app_ask(struct invocation *invocation, const char *name, invocation_rows_fn *fn);

// The argument device_id, as take_text() (devices.c).
NODISCARD bool take_device_id(struct invocation *invocation, const char **ret_id);

// Whether there is a key to seal with; if not, that is replied.
NODISCARD bool push_apps_secrets_are_kept(struct invocation *invocation);
