// SPDX-License-Identifier: Apache-2.0
// What several methods of admin.* have in common.
#include "admin_arguments.h"
#include "scopes.h"

#include <string.h>

bool take_resource_name(struct invocation *invocation, const char **ret_name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";

    if (!take_text(invocation, "name", ret_name))
        return false;
    size_t length = strlen(*ret_name);
    if (length <= RESOURCE_NAME_MAX && strspn(*ret_name, allowed) == length)
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "name: must be 1 to %d of A-Z, a-z, 0-9, '.', '_' and '-'",
                            RESOURCE_NAME_MAX);
    return false;
}

bool take_resource_params(struct invocation *invocation, struct params *params)
{
    const char *name;

    if (!take_resource_name(invocation, &name))
        return false;
    params_text(params, invocation->actor->workspace_id);
    params_text(params, name);
    return true;
}

void invocation_list_resources(struct invocation *invocation, const struct statement *statement)
{
    struct params params = {0};

    params_text(&params, invocation->actor->workspace_id);
    invocation_read(invocation, STORE_LIST, statement, &params);
}

void invocation_delete_resource(struct invocation *invocation, const struct statement *statement)
{
    struct params params = {0};

    if (take_resource_params(invocation, &params))
        invocation_change(invocation, statement, &params, false);
}

bool take_scopes(struct invocation *invocation, char *ret_scopes)
{
    if (!take_list(invocation, "scopes", ret_scopes, SCOPES_MAX + 1))
        return false;
    if (strspn(ret_scopes, "abcdefghijklmnopqrstuvwxyz:._-,") == strlen(ret_scopes)) {
        scopes_keep_known(ret_scopes);
        return true;
    }
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "scopes: must be a list such as chat:write,channels:read");
    return false;
}

bool invocation_can_encrypt(struct invocation *invocation)
{
    if (invocation->api->options.secrets->count > 0)
        return true;
    invocation_fail_message(invocation, -ERROR_SECRET_KEY_MISSING,
                            "the server has no TIDINGS_SECRET_KEY to encrypt keys and tokens with");
    return false;
}
