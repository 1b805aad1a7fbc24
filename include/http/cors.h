// SPDX-License-Identifier: Apache-2.0
// CORS: which origins may call from a browser, and the response headers for it. Any thread.
#pragma once

#include <stdbool.h>

// CORS_EXPOSED: response headers that calling pages may read. CORS_MAX_AGE: seconds for which
// browsers may cache a preflight response.
#define CORS_EXPOSED "Retry-After, X-Request-Id, X-OAuth-Scopes, X-Accepted-OAuth-Scopes"
#define CORS_MAX_AGE "600"

// Whether `origin` is in the list "a,b", or the list is "*".
bool cors_is_listed(const char *origins, const char *origin);
