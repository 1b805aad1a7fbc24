// SPDX-License-Identifier: Apache-2.0
// Serves the embedded static files: the web client, the API reference and the OpenAPI documents.
#include "web.h"

#include "base/embedded.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 128 };

// For the chat client: scripts, styles and calls of this service only. 'self' includes its
// WebSockets and its service worker, whose URL is the only one that its trusted-types policy
// creates.
static const char CHAT_POLICY[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for "
    "'script'; "
    "trusted-types tidings-worker";

// For the API reference, as strict as Redoc permits: it fills style elements that are initially
// empty (the first hash), except one (the second), and its search runs in a worker created from a
// blob.
static const char REFERENCE_POLICY[] =
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' "
    "'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc='; worker-src blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const char *type_of(const char *name)
{
    static const struct {
        const char *suffix;
        const char *type;
    } types[] = {
        {".html", "text/html; charset=utf-8"},        {".css", "text/css; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},    {".svg", "image/svg+xml"},
        {".json", "application/json; charset=utf-8"}, {".txt", "text/plain; charset=utf-8"},
    };
    const char *suffix = strrchr(name, '.');
    for (size_t i = 0; suffix && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(suffix, types[i].suffix) == 0)
            return types[i].type;
    }
    return "application/octet-stream";
}

static int path_add(struct server *server, const char *path, const struct embedded_file *embedded,
                    const char *policy)
{
    const struct server_file file = {
        .type = type_of(embedded->name),
        .policy = policy,
        .data = embedded->data,
        .length = embedded->length,
    };
    return server_file_add(server, path, &file);
}

static int file_add(struct server *server, const char *directory,
                    const struct embedded_file *embedded, const char *policy)
{
    char path[PATH_SIZE];
    if (strcmp(embedded->name, "index.html") != 0) {
        snprintf(path, sizeof path, "%s/%s", directory, embedded->name);
        return path_add(server, path, embedded, policy);
    }
    int r = path_add(server, directory, embedded, policy);
    snprintf(path, sizeof path, "%s/", directory);
    return r < 0 ? r : path_add(server, path, embedded, policy);
}

// `files` ends with an entry of NULLs.
static int files_add(struct server *server, const char *directory,
                     const struct embedded_file *files, const char *policy)
{
    int r = 0;
    for (size_t i = 0; files[i].name && r >= 0; i++)
        r = file_add(server, directory, &files[i], policy);
    return r;
}

// The chat client is at the root, and at the links of chat.getPermalink.
static int client_add(struct server *server)
{
    const struct embedded_file *page = embedded_web;
    while (strcmp(page->name, "index.html") != 0)
        page++;
    int r = path_add(server, "/", page, CHAT_POLICY);
    return r < 0 ? r : path_add(server, "/archives/*", page, CHAT_POLICY);
}

int web_add(struct server *server)
{
    int r = files_add(server, "/app", embedded_web, CHAT_POLICY);
    if (r >= 0)
        r = client_add(server);
    if (r >= 0)
        r = files_add(server, "/docs", embedded_reference, REFERENCE_POLICY);
    return r < 0 ? r : files_add(server, "", embedded_openapi, NULL);
}
