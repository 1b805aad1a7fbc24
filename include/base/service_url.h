// SPDX-License-Identifier: Apache-2.0
// The URL at which clients reach this service, without a final '/': for links in what many read.
// (What only the caller reads goes by the Host header of the call, if no public URL is set.)
#pragma once

// From a public URL, or "" and a listen address ("127.0.0.1:8080", ":8080"). Once, before any
// thread starts; never called: "".
void service_url_set(const char *public_url, const char *listen);
const char *service_url(void);
