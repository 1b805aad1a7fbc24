// SPDX-License-Identifier: Apache-2.0
// Classifies paths: the only list of paths of long-lived connections.
#include "http/path.h"

#include <stdbool.h>
#include <string.h>

static const struct {
    const char *path;
    enum path_kind kind;
    bool is_whole; // false: a prefix match
} paths[] = {
    {"/rtm/", PATH_SOCKET, false},
    {"/link/", PATH_LINK, false},
    {"/events", PATH_EVENTS, true},
    {"/api/events", PATH_EVENTS, true},
};

enum path_kind path_kind_of(const char *target, size_t length)
{
    const char *query = length > 0 ? memchr(target, '?', length) : NULL;
    size_t whole = query ? (size_t)(query - target) : length;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        size_t size = strlen(paths[i].path);
        if (whole >= size && (!paths[i].is_whole || whole == size) &&
            memcmp(target, paths[i].path, size) == 0)
            return paths[i].kind;
    }
    return PATH_OTHER;
}
