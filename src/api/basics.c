// SPDX-License-Identifier: Apache-2.0
#include "methods.h"

#include "base/digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void argument_echo(void *arg, const char *name, const char *text)
{
    struct json_writer *w = arg;

    json_text(w, name);
    buffer_append_byte(w->out, ':');
    w->comma = false;
    json_text(w, text);
}

// Echoes its arguments; `error` makes it fail with that code.
void api_test(struct invocation *invocation)
{
    const char *error = request_arg(invocation->request, "error");

    struct json_writer *w = error != NULL && error[0] != '\0'
                                ? request_reply_open_failed(invocation->request, error)
                                : invocation_open(invocation);
    json_key(w, "args");
    json_open_object(w);
    request_args_each(invocation->request, argument_echo, w);
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
    const char *public_url = invocation->api->options.public_url;
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

    params_text(&params, invocation->actor->workspace_id);
    params_text(&params, invocation->actor->user_id);
    invocation_query(invocation, STORE_READ, &AUTH_TEST, &params, auth_answer);
}

static const struct statement TICKET = {
    "ticket",
    "WITH ticket AS (INSERT INTO tickets (digest, token_id, native, expires_at) VALUES ($1, $2, "
    "$3, now() + make_interval(secs => $5::bigint / 1000.0)))"
    " SELECT u.name, w.name, w.domain FROM users u JOIN workspaces w ON w.id = u.workspace_id "
    "WHERE u.id = $4",
};

// The same for an app, unless its events go to its events_url. No row: the app is no more, which
// the token is not known to be at once.
static const struct statement APP_TICKET = {
    "app_ticket",
    "WITH app AS (SELECT a.events_url IS NULL AS by_socket FROM tokens t JOIN apps a ON "
    "a.id = t.app_id WHERE t.id = $2), "
    "ticket AS (INSERT INTO tickets (digest, token_id, native, expires_at) SELECT $1, $2, "
    "$3, now() + make_interval(secs => $5::bigint / 1000.0) FROM app WHERE by_socket)"
    " SELECT u.name, w.name, w.domain, app.by_socket FROM app, users u JOIN workspaces w "
    "ON w.id = u.workspace_id WHERE u.id = $4",
};

// What old clients of rtm.start look for. They are empty: everything is read by its own method.
static void lists_write(struct json_writer *w)
{
    static const char *const names[] = {"users", "channels", "groups",  "ims",
                                        "mpims", "bots",     "subteams"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        json_key(w, names[i]);
        json_open_array(w);
        json_close_array(w);
    }
    json_key_int(w, "cache_ts", 0);
    json_key_string(w, "latest_event_ts", "0");
}

static void ticket_answer(struct invocation *invocation, const struct result *result)
{
    const char *ticket = invocation->state;
    bool is_app = invocation->actor->type == 'a';
    char base[512];
    char url[640];

    if (result_rows(result) == 0) {
        invocation_fail(invocation, -ERROR_INVALID_AUTH);
        return;
    }
    if (is_app && !result_bool(result, 0, 3)) {
        invocation_fail(invocation, -ERROR_NOT_ALLOWED_TOKEN_TYPE);
        return;
    }
    invocation_base_url(invocation, base, sizeof base);
    // http:// becomes ws://, https:// wss://
    snprintf(url, sizeof url, "ws%s%s/%s", strncmp(base, "http", 4) == 0 ? base + 4 : base,
             is_app ? "link" : "rtm", ticket);
    struct json_writer *w = invocation_open(invocation);
    json_key_string(w, "url", url);
    if (is_app) {
        invocation_close(invocation);
        return;
    }
    json_key(w, "self");
    json_open_object(w);
    json_key_string(w, "id", invocation->actor->user_id);
    json_key_string(w, "name", result_text(result, 0, 0));
    json_close_object(w);
    json_key(w, "team");
    json_open_object(w);
    json_key_string(w, "id", invocation->actor->workspace_id);
    json_key_string(w, "name", result_text(result, 0, 1));
    json_key_string(w, "domain", result_text(result, 0, 2));
    json_close_object(w);
    if (strcmp(request_method(invocation->request), "rtm.start") == 0)
        lists_write(w);
    invocation_close(invocation);
}

// A single-use ticket for a socket, good on every instance for a short time.
void rtm_connect(struct invocation *invocation)
{
    struct params params = {0};
    char digest[DIGEST_HEX_SIZE];
    bool native = false;

    if (!take_optional_bool(invocation, "native", &native))
        return;
    char *ticket = calloc(1, TOKEN_SIZE);
    if (ticket == NULL) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return;
    }
    invocation->state = ticket;
    token_make("t", ticket);
    digest_sha256_hex(ticket, strlen(ticket), digest);
    params_text(&params, digest);
    params_text(&params, invocation->actor->token_id);
    params_bool(&params, native);
    params_text(&params, invocation->actor->user_id);
    params_int(&params, invocation->api->options.ticket_ms);
    invocation_query(invocation, STORE_WRITE,
                     invocation->actor->type == 'a' ? &APP_TICKET : &TICKET, &params,
                     ticket_answer);
}

// The same with lists, which are empty.
void rtm_start(struct invocation *invocation)
{
    rtm_connect(invocation);
}

// A ticket for a connection of an app (Socket Mode).
void apps_connections_open(struct invocation *invocation)
{
    rtm_connect(invocation);
}
