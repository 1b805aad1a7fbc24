// SPDX-License-Identifier: Apache-2.0
// api.test and auth.test, and the service's base URL for replies.
#include "methods.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A reply that lists the arguments of its call.
struct echo {
    uint32_t tag;
    struct json_writer *w;
};

static void argument_echo(void *arg, const char *name, const char *text)
{
    struct json_writer *w = CAST(echo, arg)->w;

    json_text(w, name);
    buffer_append_byte(w->out, ':');
    w->comma = false;
    json_text(w, text);
}

// Echoes its arguments; `error` makes it fail with that code.
void api_test(struct invocation *invocation)
{
    const char *error = request_arg(invocation->request, "error");

    struct json_writer *w = error && error[0] != '\0'
                                ? request_reply_open_failed(invocation->request, error)
                                : invocation_open(invocation);
    struct echo echo = {TAG(echo), w};
    json_key(w, "args");
    json_open_object(w);
    request_args_each(invocation->request, argument_echo, &echo);
    json_close_object(w);
    invocation_close(invocation);
}

static const struct statement AUTH_TEST = {
    "auth_test",
    "SELECT w.name, u.name, coalesce(u.bot_id, '') FROM workspaces w JOIN users u ON "
    "u.workspace_id = w.id WHERE w.id = $1 AND u.id = $2",
};

void invocation_base_url(const struct invocation *invocation, char *ret_url, size_t size)
{
    const char *public_url = invocation->api->options.settings.public_url;
    const char *host = request_host(invocation->request);

    if (public_url[0] != '\0')
        snprintf(ret_url, size, "%s%s", public_url,
                 public_url[strlen(public_url) - 1] == '/' ? "" : "/");
    else
        snprintf(ret_url, size, "http://%s/", host[0] != '\0' ? host : "localhost");
}

static void auth_answer(struct invocation *invocation, const struct result *result)
{
    const struct actor *actor = invocation->actor;
    char url[512];

    if (result_rows(result) == 0) {
        invocation_fail(invocation, -ERROR_INVALID_AUTH);
        return;
    }
    invocation_base_url(invocation, url, sizeof url);
    struct json_writer *w = invocation_open(invocation);
    json_key_string(w, "url", url);
    json_key_string(w, "team", result_text(result, 0, 0));
    json_key_string(w, "user", result_text(result, 0, 1));
    json_key_string(w, "team_id", actor->workspace_id);
    json_key_string(w, "user_id", actor->user_id);
    json_key_string(
        w, "bot_id",
        result_text(result, 0, 2)); // "" for people: Slack's Python client needs the key
    if (actor->app_id[0] != '\0')
        json_key_string(w, "app_id", actor->app_id);
    json_key_bool(w, "is_enterprise_install", false);
    invocation_close(invocation);
}

void auth_test(struct invocation *invocation)
{
    struct params params = {0};

    invocation_caller_params(invocation, &params);
    invocation_query(invocation, STORE_READ, &AUTH_TEST, &params, auth_answer);
}
