// SPDX-License-Identifier: Apache-2.0
// The files that never change: web/, a chat client for browsers, at /, /app and below /archives/
// (links to messages); the API's reference at /docs; its description for programs, /openapi.json
// and (OpenAPI 3.0.3) /openapi-3.0.json.
#pragma once

#include "http/server.h"

// On the loop's thread.
NODISCARD int web_add(struct server *server);
