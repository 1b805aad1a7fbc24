// SPDX-License-Identifier: Apache-2.0
// Classifies paths: long-lived connections, or other requests.
#pragma once

#include <stddef.h>

enum path_kind {
    PATH_OTHER,  // a call, a page, or not found
    PATH_SOCKET, // /rtm/…: a WebSocket
    PATH_LINK,   // /link/…: a WebSocket of an app (Socket Mode)
    PATH_EVENTS, // /events; also /api/events, as the OpenAPI document lists it with the methods
};

// `target` is the target of a request line and may contain a query.
enum path_kind path_kind_of(const char *target, size_t length);
