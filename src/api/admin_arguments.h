// SPDX-License-Identifier: Apache-2.0
// Arguments that several methods of admin.* read.
#pragma once

#include "invocation.h"

enum { SCOPES_MAX = 500, RESOURCE_NAME_MAX = 80 };

// The argument `name` of a push app or provider: 1 to RESOURCE_NAME_MAX of A-Z, a-z, 0-9, '.', '_'
// and '-'. False: an error was replied.
NODISCARD bool take_resource_name(struct invocation *invocation, const char **ret_name);

// The optional list `scopes`, as "a,b", without unknown ones; "": absent. ret_scopes has SCOPES_MAX
// + 1 bytes. False: an error was replied.
NODISCARD bool take_scopes(struct invocation *invocation, char *ret_scopes);

// Whether there is a key to encrypt secrets with. False: an error was replied.
NODISCARD bool invocation_can_encrypt(struct invocation *invocation);
