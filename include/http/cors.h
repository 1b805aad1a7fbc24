// SPDX-License-Identifier: Apache-2.0
// Pages of other origins (CORS): which may call, and the headers that tell their browser so. Any
// thread.
#pragma once

#include <stdbool.h>

// What every answer to such a page has, after the origin; and what answers its question beforehand.
#define CORS_EXPOSED "Retry-After, X-Request-Id, X-OAuth-Scopes, X-Accepted-OAuth-Scopes"
#define CORS_MAX_AGE "600"

// Whether `origin` is in the list "a,b", or the list is "*".
bool cors_is_listed(const char *origins, const char *origin);
