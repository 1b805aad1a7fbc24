// SPDX-License-Identifier: Apache-2.0
// The description of the API for programs: /openapi.json, and /openapi-3.0.json in OpenAPI 3.0.3.
#pragma once

#include "http/server.h"

// On the loop's thread.
NODISCARD int reference_add(struct server *server);
