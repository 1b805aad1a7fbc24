// SPDX-License-Identifier: Apache-2.0
// A parsed Redis URL. A plain value.
//   redis://[[user]:password@]host[:port][/db]
//   rediss://…[?cacert=file&cert=file&key=file]: the same, with TLS
//   unix://[[user]:password@]/path
//   redis+sentinel://[[user]:password@]host[:port],…/master[/db][?sentinel_user=&sentinel_password=]
//   rediss+sentinel://…: the same, with TLS to Sentinels and servers, and the files of rediss://
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

enum { URL_TEXT_SIZE = 256, URL_PORT_SIZE = 8, URL_LOGIN_TEXTS = 3, URL_SENTINELS_MAX = 8 };

struct url {
    char host[URL_TEXT_SIZE]; // "" if `path` or `master` is used
    char port[URL_PORT_SIZE];
    char path[108]; // Unix socket
    char user[URL_TEXT_SIZE];
    char password[URL_TEXT_SIZE]; // "" if there is none
    int64_t database;
    bool tls;
    char cacert[URL_TEXT_SIZE]; // files in PEM; "": the system's authorities
    char cert[URL_TEXT_SIZE];   // "": no certificate of our own
    char key[URL_TEXT_SIZE];
    char master[URL_TEXT_SIZE]; // the name by which Sentinels know the server; "": no Sentinels
    int sentinels;
    struct {
        char host[URL_TEXT_SIZE];
        char port[URL_PORT_SIZE];
    } sentinel[URL_SENTINELS_MAX];
    char sentinel_user[URL_TEXT_SIZE];
    char sentinel_password[URL_TEXT_SIZE];
};

// -ERROR_INVALID_ARGUMENTS for any other format.
NODISCARD int url_parse(const char *text, struct url *ret_url);

// The command that logs in: fills in at most URL_LOGIN_TEXTS texts, which point into `url`, and
// returns their number; 0 without a login.
int url_login(const struct url *url, const char **ret_texts);

// The URL of one of the Sentinels, as a server of its own.
void url_sentinel(const struct url *url, int number, struct url *ret_url);
