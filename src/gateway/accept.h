// SPDX-License-Identifier: Apache-2.0
// Takes connections over from the front door.
#pragma once

#include <stddef.h>

struct gateway;

// `head` is what was read of the request already; takes over `fd`.
void accept_connection(struct gateway *gateway, int fd, const char *head, size_t length);
