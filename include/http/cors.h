// SPDX-License-Identifier: Apache-2.0
// CORS: which pages of other origins may call, and the headers that tell browsers so. Any thread.
#pragma once

#include <stdbool.h>

// Headers of every answer to such a page, after the origin's; headers of the answer to a preflight.
#define CORS_EXPOSED "Retry-After, X-Request-Id, X-OAuth-Scopes, X-Accepted-OAuth-Scopes"
#define CORS_MAX_AGE "600"

// Whether `origin` is in the list "a,b", or the list is "*".
bool cors_is_listed(const char *origins, const char *origin);
