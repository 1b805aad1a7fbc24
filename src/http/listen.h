// SPDX-License-Identifier: Apache-2.0
// Listening sockets.
#pragma once

#include "base/cleanup.h"

// A listening socket on "host:port". The error is logged.
NODISCARD int listen_on(const char *address, int *ret_fd);
