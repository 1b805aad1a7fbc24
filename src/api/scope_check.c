// SPDX-License-Identifier: Apache-2.0
// Refuses calls by tokens that have a method's scope only in other types of channels. What the
// caller may not see is left to the method, which answers as if it did not exist.
#include "scope_check.h"

#include "scopes.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

static const struct statement CHANNEL_TYPE = {
    "scope_channel_type",
    "SELECT c.type FROM channels c WHERE c.id = $1 AND (c.workspace_id = $2) IS TRUE AND (NOT "
    "c.is_private OR EXISTS (SELECT 1 FROM channel_members m WHERE m.channel_id = c.id AND "
    "m.user_id = $3 AND m.active))"};

void scope_refuse(struct invocation *invocation)
{
    char members[1024];

    snprintf(members, sizeof members, "\"needed\":\"%s\",\"provided\":\"%s\"",
             invocation->method->scope, scopes_of(invocation->actor));
    request_reply_error_members(invocation->request, -ERROR_MISSING_SCOPE, members);
    invocation_end(invocation);
}

static void type_answer(struct invocation *invocation, const struct result *result)
{
    bool is_seen = result_rows(result) > 0;

    if (is_seen && (invocation->types >> result_int(result, 0, 0) & 1) == 0)
        scope_refuse(invocation);
    else
        invocation->method->fn(invocation);
}

// Lists, which leave out what the scope does not permit.
static bool is_list(const struct method *method)
{
    return strcmp(method->name, "channels.list") == 0 ||
           strcmp(method->name, "users.conversations") == 0;
}

// Whether it opens the only kind of conversation that the token may: of more than two people.
static bool opens_group(const struct invocation *invocation)
{
    const char *users = request_arg(invocation->request, "users");

    return strcmp(invocation->method->name, "channels.open") == 0 && users && strchr(users, ',');
}

void scope_check(struct invocation *invocation)
{
    const struct method *method = invocation->method;
    const char *channel_id = request_arg(invocation->request, "channel");

    invocation->types =
        method->scope ? scopes_types(invocation->actor, method->scope) : (unsigned)TYPES_ALL;
    if (invocation->types == TYPES_ALL || is_list(method) || opens_group(invocation)) {
        method->fn(invocation);
    } else if (channel_id && id_is_valid(channel_id, "CGD")) {
        CLEANUP_PARAMS struct params params = {0};
        params_text(&params, channel_id);
        params_text(&params, invocation->actor->workspace_id);
        params_text(&params, invocation->actor->user_id);
        invocation_query(invocation, STORE_READ, &CHANNEL_TYPE, &params, type_answer);
    } else {
        scope_refuse(invocation);
    }
}
