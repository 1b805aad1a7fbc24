// SPDX-License-Identifier: Apache-2.0
// URLs that callers give, for this service to call.
#pragma once

#include <stdbool.h>

enum { URL_MAX = 2000 };

// Whether it is an http or https URL of printable ASCII, at most URL_MAX long, with a host.
bool url_is_good(const char *url);

// Whether the URL is https and its host not, as it stands there, a private or local address. A name
// is looked up when it is called, and its address checked then.
bool url_is_public(const char *url);
