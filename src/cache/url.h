// SPDX-License-Identifier: Apache-2.0
// A parsed Redis URL: redis://[[user]:password@]host[:port][/db] or unix:///path. A plain value.
#pragma once

#include "base/cleanup.h"

#include <stdint.h>

enum { URL_TEXT_SIZE = 256, URL_PORT_SIZE = 8 };

struct url {
    char host[URL_TEXT_SIZE]; // "" if `path` is used
    char port[URL_PORT_SIZE];
    char path[108]; // Unix socket
    char user[URL_TEXT_SIZE];
    char password[URL_TEXT_SIZE]; // "" if there is none
    int64_t database;
};

// -ERROR_INVALID_ARGUMENTS for any other format.
NODISCARD int url_parse(const char *text, struct url *ret_url);
