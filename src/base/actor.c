// SPDX-License-Identifier: Apache-2.0
// Checks an actor's scopes.
#include "base/actor.h"

#include <string.h>

#define EMAIL_SCOPE "users:read.email"

bool actor_has_scope(const struct actor *actor, const char *scope)
{
    const char *scopes = actor->scopes;
    size_t length = strlen(scope);

    if (scopes[0] == '\0')
        return actor->is_admin || strcmp(scope, EMAIL_SCOPE) != 0;
    while (*scopes != '\0') {
        size_t here = strcspn(scopes, ",");
        if (here == length && strncmp(scopes, scope, length) == 0)
            return true;
        scopes += here + (scopes[here] == ',');
    }
    return false;
}

bool actor_reads_email(const struct actor *actor)
{
    bool has_list = actor->scopes[0] != '\0';

    return (actor->is_admin && actor_has_scope(actor, "admin")) ||
           (has_list && actor_has_scope(actor, EMAIL_SCOPE));
}
