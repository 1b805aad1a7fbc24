// SPDX-License-Identifier: Apache-2.0
#include "reference.h"

#include "base/embedded.h"

#include <stdio.h>

enum { PATH_SIZE = 128 };

static int document_add(struct server *server, const struct embedded_file *embedded)
{
    struct server_file file = {
        .type = "application/json; charset=utf-8",
        .data = embedded->data,
        .length = embedded->length,
    };
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "/%s", embedded->name);
    return server_file_add(server, path, &file);
}

int reference_add(struct server *server)
{
    int r = 0;
    for (size_t i = 0; i < embedded_openapi_count && r >= 0; i++)
        r = document_add(server, &embedded_openapi[i]);
    return r;
}
