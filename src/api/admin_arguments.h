// SPDX-License-Identifier: Apache-2.0
// What several methods of admin.* have in common: arguments, and resources of a workspace.
#pragma once

#include "invocation.h"

enum { SCOPES_MAX = 500, RESOURCE_NAME_MAX = 80 };

// The argument `name` of a push app or provider: 1 to RESOURCE_NAME_MAX of A-Z, a-z, 0-9, '.', '_'
// and '-'. False: an error was replied.
NODISCARD bool take_resource_name(struct invocation *invocation, const char **ret_name);

// Adds the workspace, and the resource that the argument `name` names. False: an error was replied.
NODISCARD bool take_resource_params(struct invocation *invocation, struct params *params);

// Replies with all resources of one kind that the workspace has: the statement takes the workspace.
void invocation_list_resources(struct invocation *invocation, const struct statement *statement);

// Deletes the resource that the argument `name` names: the statement takes workspace and name.
void invocation_delete_resource(struct invocation *invocation, const struct statement *statement);

// The optional list `scopes`, as "a,b", without unknown ones; "": absent. ret_scopes has SCOPES_MAX
// + 1 bytes. False: an error was replied.
NODISCARD bool take_scopes(struct invocation *invocation, char *ret_scopes);

// Whether there is a key to encrypt secrets with. False: an error was replied.
NODISCARD bool invocation_can_encrypt(struct invocation *invocation);
