// SPDX-License-Identifier: Apache-2.0
// Checks whether an origin is allowed to call (CORS).
#include "http/cors.h"

#include <string.h>

bool cors_is_listed(const char *origins, const char *origin)
{
    size_t length = strlen(origin);

    if (strcmp(origins, "*") == 0)
        return true;
    while (*origins != '\0') {
        size_t here = strcspn(origins, ",");
        if (here == length && memcmp(origins, origin, length) == 0)
            return true;
        origins += here + (origins[here] == ',');
    }
    return false;
}
