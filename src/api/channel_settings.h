// SPDX-License-Identifier: Apache-2.0
// Arguments shared by methods that name channels.
#pragma once

#include "invocation.h"

// Reads the argument `name` as a channel name. False: an error was replied.
NODISCARD bool take_channel_name(struct invocation *invocation, const char **ret_name);
