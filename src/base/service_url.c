// SPDX-License-Identifier: Apache-2.0
// Keeps the URL of this service.
#include "base/service_url.h"

#include <stdio.h>
#include <string.h>

enum { URL_SIZE = 512 };

static char url[URL_SIZE];

void service_url_set(const char *public_url, const char *listen)
{
    if (public_url[0] != '\0')
        snprintf(url, sizeof url, "%s", public_url);
    else
        snprintf(url, sizeof url, "http://%s%s", listen[0] == ':' ? "localhost" : "", listen);
    size_t length = strlen(url);
    while (length > 0 && url[length - 1] == '/')
        url[--length] = '\0';
}

const char *service_url(void)
{
    return url;
}
