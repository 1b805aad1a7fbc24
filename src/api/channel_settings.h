// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "invocation.h"

// The argument `name` as a channel's name. False after an error was replied.
NODISCARD bool take_channel_name(struct invocation *invocation, const char **ret_name);
