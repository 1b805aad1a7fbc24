// SPDX-License-Identifier: Apache-2.0
// Static files: web/, a chat client for browsers, at /, /app and below /archives/ (links to
// messages); the API reference at /docs; the OpenAPI documents /openapi.json and (OpenAPI 3.0.3)
// /openapi-3.0.json.
#pragma once

#include "http/server.h"

// On the loop's thread.
NODISCARD int web_add(struct server *server);
