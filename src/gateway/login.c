// SPDX-License-Identifier: Apache-2.0
// Turns a ticket or token into an actor, and reads the actor's channels.
#include "login.h"

#include "connection/connection.h"
#include "core.h"
#include "user/missed_marks.h"
#include "user/token_sweep.h"

#include "base/check.h"
#include "base/digest.h"
#include "base/error.h"
#include "call/internal_request.h"
#include "login/jwt.h"
#include "store/token_rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The first use deletes a ticket, valid or not. The scopes of an app socket are the events that its
// app has subscribed to.
static const struct statement use = {
    "gateway_ticket_use",
    "WITH ticket AS (DELETE FROM tickets WHERE digest = $1 RETURNING token_id, native, expires_at) "
    "SELECT t.workspace_id, t.user_id, t.id, coalesce(u.bot_id, ''), coalesce(t.app_id, ''), "
    "t.type,"
    " u.is_admin, coalesce(a.events, t.scopes), k.native, u.manual_away, coalesce(t.rate_limit, 0),"
    " " TOKEN_LEFT_MS("t") ", " TOKEN_BOT(
        "u") " FROM ticket k JOIN tokens t ON t.id = k.token_id JOIN users u ON u.id = t.user_id"
             " LEFT JOIN apps a ON a.id = t.app_id"
             " WHERE k.expires_at > now() AND " TOKEN_IS_GOOD("t", "u")};

static const struct statement use_token = {
    "gateway_token_use",
    "SELECT t.workspace_id, t.user_id, t.id, coalesce(u.bot_id, ''), coalesce(t.app_id, ''),"
    " t.type, u.is_admin, t.scopes, true, u.manual_away, coalesce(t.rate_limit, 0),"
    " " TOKEN_LEFT_MS("t") ", " TOKEN_BOT("u") " FROM tokens t JOIN users u ON u.id = t.user_id"
                                               " WHERE t.digest = $1 AND " TOKEN_IS_GOOD("t", "u")};

// Further connections wait to be opened: reading the channels and backlogs of too many at once
// would delay API calls.
enum { OPENINGS_MAX = 8, REPLY_SIZE = 256 };

struct login {
    uint32_t tag;
    struct list link; // in the gateway's opening_next
    struct gateway *gateway;
    struct connection *connection; // NULL once it is gone
    char reply[REPLY_SIZE];
    char digest[DIGEST_HEX_SIZE]; // of the credential
};

void login_forget(struct connection *c)
{
    if (!c->login)
        return;
    struct login *login = TAKE(c->login);
    login->connection = NULL;
    if (!list_is_empty(&login->link)) {
        list_remove(&login->link);
        TAGGED_FREE(login);
    }
}

static void on_channels(void *arg, const struct store_outcome *outcome);

// The actor is known: reads the channels, by the statement of the kind of connection.
static void channels_ask(struct login *login)
{
    CLEANUP_PARAMS struct params params = {0};
    struct connection *c = login->connection;
    params_text(&params, c->actor.user_id);
    const struct statement *channels = c->ops->channels(c, &params);
    missed_marks_note_first(c->gateway);
    c->gateway->openings++;
    gateway_ask(c->gateway);
    store_call(c->gateway->store, STORE_SYNC, channels, &params, on_channels, login);
}

static void openings_advance(struct gateway *gateway)
{
    while (gateway->openings < OPENINGS_MAX && !list_is_empty(&gateway->opening_next)) {
        struct login *login = LIST_ITEM(gateway->opening_next.next, struct login, link);
        list_remove(&login->link);
        channels_ask(login);
    }
}

// The channels were read. False: the gateway is gone, and the connection with it.
static bool opening_end(struct login *login)
{
    if (!gateway_answer(login->gateway))
        return false;
    login->gateway->openings--;
    openings_advance(login->gateway);
    return true;
}

// Detaches the connection from its finished login, and returns it; NULL: it is gone.
static struct connection *login_end(struct login *login)
{
    struct connection *c = login->connection;
    if (c)
        c->login = NULL;
    return c;
}

static void on_channels(void *arg, const struct store_outcome *outcome)
{
    struct login *login = CAST(login, arg);
    struct connection *c = opening_end(login) ? login_end(login) : NULL;
    if (c && (outcome->r < 0 || c->gateway->draining))
        c->ops->refuse(c, 503, login->reply);
    else if (c)
        c->ops->open(c, outcome->result, login->reply);
    if (c && c->state == CONNECTION_OPEN)
        token_sweep_on_open(c);
    TAGGED_FREE(login);
}

static void id_copy(char *to, const struct result *result, int column)
{
    snprintf(to, EVENT_ID_SIZE, "%s", result_text(result, 0, column));
}

static void actor_read(const struct result *result, struct connection *c)
{
    struct actor *actor = &c->actor;
    id_copy(actor->workspace_id, result, 0);
    id_copy(actor->user_id, result, 1);
    id_copy(actor->token_id, result, 2);
    id_copy(actor->bot_id, result, 3);
    id_copy(actor->app_id, result, 4);
    actor->type = result_text(result, 0, 5)[0];
    actor->is_admin = result_bool(result, 0, 6);
    snprintf(actor->scopes, sizeof actor->scopes, "%s", result_text(result, 0, 7));
    c->native = result_bool(result, 0, 8);
    c->manual_away = result_bool(result, 0, 9);
    actor->rate_limit = result_int(result, 0, 10);
    id_copy(actor->bot.app_id, result, 12);
    snprintf(actor->bot.name, sizeof actor->bot.name, "%s", result_text(result, 0, 13));
    actor->bot.updated = result_int(result, 0, 14);
    c->expires_ms = result_is_null(result, 0, 11)
                        ? 0
                        : loop_now_ms(c->gateway->loop) + result_int(result, 0, 11);
}

static void on_used(void *arg, const struct store_outcome *outcome)
{
    struct login *login = CAST(login, arg);
    struct connection *c = login->connection;
    bool known = outcome->r == 0 && result_rows(outcome->result) > 0;
    if (!c) {
        TAGGED_FREE(login);
        return;
    }
    if (known)
        actor_read(outcome->result, c);
    int status = c->ops->admit(c, outcome->r, known);
    if (status == 0) {
        list_append(&c->gateway->opening_next, &login->link);
        openings_advance(c->gateway);
        return;
    }
    (void)login_end(login);
    c->ops->refuse(c, status, login->reply);
    TAGGED_FREE(login);
}

// NULL: out of memory, and the connection was refused.
static struct login *login_new(struct connection *c, const char *credential, const char *reply,
                               struct params *params)
{
    struct login *login = TAGGED_NEW(login);
    if (!login) {
        c->ops->refuse(c, 503, reply);
        return NULL;
    }
    list_init(&login->link);
    login->gateway = c->gateway;
    login->connection = c;
    c->login = login;
    c->asked_ms = loop_now_ms(c->gateway->loop);
    snprintf(login->reply, sizeof login->reply, "%s", reply);
    digest_sha256_hex(credential, strlen(credential), login->digest);
    params_text(params, login->digest);
    return login;
}

void login_ticket(struct connection *c, const char *ticket, const char *reply)
{
    CLEANUP_PARAMS struct params params = {0};
    struct login *login = login_new(c, ticket, reply, &params);
    if (login)
        store_change(c->gateway->store, ticket, &use, &params, on_used, login);
}

// Any call with a JWT logs its bearer in; `fn` then gets the call's outcome.
static int jwt_call(struct gateway *gateway, const char *jwt, request_done_fn *fn, void *arg)
{
    struct request *request;
    int r = request_new("auth.test", jwt, fn, arg, &request);
    if (r < 0)
        return r;
    gateway_ask(gateway);
    gateway->options.on_call(gateway->options.arg, request);
    return 0;
}

static void login_refuse(struct login *login)
{
    struct connection *c = login_end(login);
    if (c)
        c->ops->refuse(c, 503, login->reply);
    TAGGED_FREE(login);
}

// The API has logged the bearer of a JWT in, or refused to: looks for its token in any case.
static void on_jwt_called(void *arg, const struct request_outcome *outcome)
{
    CLEANUP_PARAMS struct params params = {0};
    struct login *login = CAST(login, arg);
    bool is_alive = gateway_answer(login->gateway);
    if (!is_alive || !login->connection) {
        TAGGED_FREE(login);
        return;
    }
    if (strcmp(outcome->error, error_code(ERROR_UNAVAILABLE)) == 0) {
        login_refuse(login);
        return;
    }
    params_text(&params, login->digest);
    store_call(login->gateway->store, STORE_READ, &use_token, &params, on_used, login);
}

void login_token(struct connection *c, const char *token)
{
    CLEANUP_PARAMS struct params params = {0};
    struct login *login = login_new(c, token, "", &params);
    if (!login)
        return;
    if (!jwt_is_like(token))
        store_call(c->gateway->store, STORE_READ, &use_token, &params, on_used, login);
    else if (jwt_call(c->gateway, token, on_jwt_called, login) < 0)
        login_refuse(login);
}

struct login_renewal {
    uint32_t tag;
    struct gateway *gateway;
    char digest[DIGEST_HEX_SIZE];
    login_renewal_fn *fn;
    void *arg;
};

static void renewal_end(struct login_renewal *renewal, int r, const struct result *result)
{
    renewal->fn(renewal->arg, r, result);
    TAGGED_FREE(renewal);
}

static void on_renewal_found(void *arg, const struct store_outcome *outcome)
{
    struct login_renewal *renewal = CAST(login_renewal, arg);
    int r = gateway_answer(renewal->gateway) ? outcome->r : -ERROR_UNAVAILABLE;
    if (r == 0 && result_rows(outcome->result) == 0)
        r = -ERROR_INVALID_TOKEN;
    renewal_end(renewal, r, r == 0 ? outcome->result : NULL);
}

static void renewal_ask(struct login_renewal *renewal)
{
    CLEANUP_PARAMS struct params params = {0};
    params_text(&params, renewal->digest);
    gateway_ask(renewal->gateway);
    store_call(renewal->gateway->store, STORE_READ, &use_token, &params, on_renewal_found, renewal);
}

static void on_renewal_called(void *arg, const struct request_outcome *outcome)
{
    struct login_renewal *renewal = CAST(login_renewal, arg);
    bool is_alive = gateway_answer(renewal->gateway);
    if (!is_alive || strcmp(outcome->error, error_code(ERROR_UNAVAILABLE)) == 0)
        renewal_end(renewal, -ERROR_UNAVAILABLE, NULL);
    else
        renewal_ask(renewal);
}

int login_renew(struct gateway *gateway, const char *token, login_renewal_fn *fn, void *arg)
{
    struct login_renewal *renewal = TAGGED_NEW(login_renewal);
    if (!renewal)
        return -ERROR_MEMORY;
    renewal->gateway = gateway;
    renewal->fn = fn;
    renewal->arg = arg;
    digest_sha256_hex(token, strlen(token), renewal->digest);
    if (!jwt_is_like(token)) {
        renewal_ask(renewal);
        return 0;
    }
    int r = jwt_call(gateway, token, on_renewal_called, renewal);
    if (r < 0)
        TAGGED_FREE(renewal);
    return r;
}

int login_renewed(struct connection *c, int64_t asked_ms, const struct result *result)
{
    const struct connection before = *c;
    actor_read(result, c);
    c->native = before.native;
    c->manual_away = before.manual_away;
    if (strcmp(c->actor.user_id, before.actor.user_id) != 0 || c->actor.type == 'a' ||
        !actor_has_scope(&c->actor, "rtm:stream")) {
        c->actor = before.actor;
        c->expires_ms = before.expires_ms;
        return -ERROR_INVALID_TOKEN;
    }
    c->asked_ms = asked_ms;
    token_sweep_on_open(c);
    return 0;
}
