// SPDX-License-Identifier: Apache-2.0
// The table of the algorithms that JWTs may be signed with.
#include "login/jwt_algorithm.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    const char *digest;
} algorithms[JWT_ALGORITHM_MAX] = {
    [JWT_HS256] = {"HS256", "SHA256"}, [JWT_HS384] = {"HS384", "SHA384"},
    [JWT_HS512] = {"HS512", "SHA512"}, [JWT_RS256] = {"RS256", "SHA256"},
    [JWT_RS384] = {"RS384", "SHA384"}, [JWT_RS512] = {"RS512", "SHA512"},
    [JWT_PS256] = {"PS256", "SHA256"}, [JWT_PS384] = {"PS384", "SHA384"},
    [JWT_PS512] = {"PS512", "SHA512"}, [JWT_ES256] = {"ES256", "SHA256"},
    [JWT_ES384] = {"ES384", "SHA384"}, [JWT_EDDSA] = {"EdDSA", NULL},
};

enum jwt_algorithm jwt_algorithm_find(const char *name)
{
    int found = 0;

    while (found < JWT_ALGORITHM_MAX && strcmp(algorithms[found].name, name) != 0)
        found++;
    return (enum jwt_algorithm)found;
}

bool jwt_algorithms_parse(const char *list, unsigned *ret_algorithms)
{
    char name[16];
    bool are_known = true;

    *ret_algorithms = 0;
    for (size_t length; *list != '\0'; list += length + (list[length] == ',')) {
        length = strcspn(list, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, list);
        enum jwt_algorithm found = jwt_algorithm_find(name);
        if (found == JWT_ALGORITHM_MAX)
            are_known = false;
        else
            *ret_algorithms |= 1U << found;
    }
    return are_known;
}

const char *jwt_algorithm_name(enum jwt_algorithm algorithm)
{
    return algorithms[algorithm].name;
}

const char *jwt_algorithm_digest(enum jwt_algorithm algorithm)
{
    return algorithms[algorithm].digest;
}

bool jwt_algorithm_is_in(enum jwt_algorithm algorithm, unsigned in)
{
    return (in & 1U << algorithm) != 0;
}
