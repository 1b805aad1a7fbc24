// SPDX-License-Identifier: Apache-2.0
// Where Redis is, as its URL says: redis://[[user]:password@]host[:port][/db] or unix:///path. A
// plain value.
#pragma once

#include "base/cleanup.h"

#include <stdint.h>

enum { URL_TEXT_SIZE = 256, URL_PORT_SIZE = 8 };

struct url {
    char host[URL_TEXT_SIZE]; // "" when `path` is used
    char port[URL_PORT_SIZE];
    char path[108]; // of a Unix socket
    char user[URL_TEXT_SIZE];
    char password[URL_TEXT_SIZE]; // "" when there is none
    int64_t database;
};

// -ERROR_INVALID_ARGUMENTS for anything else than the forms above.
NODISCARD int url_parse(const char *text, struct url *ret_url);
