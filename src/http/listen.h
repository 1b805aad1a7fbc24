// SPDX-License-Identifier: Apache-2.0
// Opens listening sockets.
#pragma once

#include "base/cleanup.h"

// Opens a listening socket on "host:port". Errors are logged.
NODISCARD int listen_on(const char *address, int *ret_fd);
