// SPDX-License-Identifier: Apache-2.0
#include "web.h"

#include "base/embedded.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 128 };

// Scripts, styles and calls of this very service alone; "self" covers its WebSockets too.
static const char POLICY[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for "
    "'script'; "
    "trusted-types 'none'";

static const char *type_of(const char *name)
{
    static const struct {
        const char *suffix;
        const char *type;
    } types[] = {
        {".html", "text/html; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".svg", "image/svg+xml"},
    };
    const char *suffix = strrchr(name, '.');
    for (size_t i = 0; suffix != NULL && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(suffix, types[i].suffix) == 0)
            return types[i].type;
    }
    return "application/octet-stream";
}

static int file_add(struct server *server, const struct embedded_file *embedded)
{
    struct server_file file = {
        .type = type_of(embedded->name),
        .policy = POLICY,
        .data = embedded->data,
        .length = embedded->length,
    };
    char path[PATH_SIZE];
    if (strcmp(embedded->name, "index.html") != 0) {
        snprintf(path, sizeof path, "/app/%s", embedded->name);
        return server_file_add(server, path, &file);
    }
    int r = server_file_add(server, "/app", &file);
    return r < 0 ? r : server_file_add(server, "/app/", &file);
}

int web_add(struct server *server)
{
    int r = 0;
    for (size_t i = 0; i < embedded_web_count && r >= 0; i++)
        r = file_add(server, &embedded_web[i]);
    return r;
}
