// SPDX-License-Identifier: Apache-2.0
// Validates URLs that callers provide for this service to call.
#pragma once

#include "invocation.h"

#include <stdbool.h>

enum { URL_MAX = 2000 };

// Whether it is an http or https URL with a host, of printable ASCII, with at most URL_MAX
// characters.
bool url_is_good(const char *url);

// The same of an argument, if there is one. False: an error was replied.
NODISCARD bool url_check(struct invocation *invocation, const char *name, const char *url);

// Whether the URL is https and its host is not literally a private or local address. Host names are
// resolved, and their addresses checked, only when the URL is called.
bool url_is_public(const char *url);
