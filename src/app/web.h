// SPDX-License-Identifier: Apache-2.0
// The files of web/, a chat client for browsers, at /app.
#pragma once

#include "http/server.h"

// On the loop's thread.
NODISCARD int web_add(struct server *server);
