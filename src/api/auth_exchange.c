// SPDX-License-Identifier: Apache-2.0
// auth.exchange: a token of Tidings for a JWT of an identity provider.
#include "methods.h"

#include "base/check.h"
#include "jwt_login.h"

#include <string.h>

enum { WORKSPACE_LENGTH_MAX = 80 };

// The new token, until it is stored.
struct token_exchange {
    uint32_t tag;
    char token[TOKEN_SIZE];
};

static void on_exchanged(void *arg, const struct jwt_login_outcome *outcome)
{
    struct invocation *invocation = CAST(invocation, arg);
    const struct token_exchange *exchange = CAST(token_exchange, invocation->state);

    if (outcome->r == -ERROR_INVALID_ARGUMENTS) {
        invocation_fail_message(invocation, outcome->r,
                                "workspace: the token is for several; name one");
        return;
    }
    if (outcome->r < 0) {
        invocation_fail(invocation, outcome->r);
        return;
    }
    struct json_writer *w = invocation_open(invocation);
    json_key_string(w, "token", exchange->token);
    buffer_append_byte(w->out, ',');
    buffer_append(w->out, outcome->reply + 1, strlen(outcome->reply) - 2);
    invocation_close(invocation);
}

// The argument, whatever token the caller has already; or the bearer's token.
static bool take_jwt(struct invocation *invocation, const char **ret_jwt)
{
    const char *argument = request_arg(invocation->request, "token");

    *ret_jwt = argument ? argument : request_token(invocation->request);
    if ((*ret_jwt)[0] != '\0')
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS, "missing required field: token");
    return false;
}

static bool take_workspace(struct invocation *invocation, const char **ret_workspace)
{
    if (!take_optional_word(invocation, "workspace", ret_workspace))
        return false;
    if (strlen(*ret_workspace) <= WORKSPACE_LENGTH_MAX)
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_ARGUMENTS,
                            "workspace: must be the id or domain of a workspace");
    return false;
}

void auth_exchange(struct invocation *invocation)
{
    struct jwt_login_options options = {.workspace = ""};

    if (!take_jwt(invocation, &options.jwt) || !take_workspace(invocation, &options.workspace))
        return;
    struct token_exchange *exchange = TAGGED_NEW(token_exchange);
    if (!exchange) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    invocation->state = exchange;
    request_set_secret(invocation->request);
    token_make("xoxp", exchange->token);
    digest_sha256_hex(exchange->token, strlen(exchange->token), options.digest);
    jwt_login(invocation->api, &options, on_exchanged, invocation);
}
