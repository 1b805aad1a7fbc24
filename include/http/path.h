// SPDX-License-Identifier: Apache-2.0
// Which paths belong to long-lived connections.
#pragma once

#include <stddef.h>

enum path_kind {
    PATH_OTHER,  // a call, a page, or nothing
    PATH_SOCKET, // /rtm/…: a WebSocket
    PATH_LINK,   // /link/…: a WebSocket of an app
    PATH_EVENTS, // /events, and /api/events, where the OpenAPI document has it beside the methods
};

// Of the target of a request line, which may have a query.
enum path_kind path_kind_of(const char *target, size_t length);
