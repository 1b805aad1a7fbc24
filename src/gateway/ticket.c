// SPDX-License-Identifier: Apache-2.0
// Turns a ticket or token into an actor and its channels, and says hello.
#include "ticket.h"

#include "connection.h"
#include "core.h"
#include "handshake.h"
#include "marks.h"
#include "people.h"
#include "resume.h"
#include "sse.h"
#include "stream.h"

#include "base/digest.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A ticket is used up by whoever comes first, good or not. The scopes of a link are the events that
// its app wants.
static const struct statement use = {
    "gateway_ticket_use",
    "WITH ticket AS (DELETE FROM tickets WHERE digest = $1 RETURNING token_id, native, expires_at) "
    "SELECT t.workspace_id, t.user_id, t.id, coalesce(u.bot_id, ''), coalesce(t.app_id, ''), "
    "t.type,"
    " u.is_admin, coalesce(a.events, t.scopes), k.native, u.manual_away, coalesce(t.rate_limit, 0)"
    " FROM ticket k JOIN tokens t ON t.id = k.token_id JOIN users u ON u.id = t.user_id"
    " LEFT JOIN apps a ON a.id = t.app_id"
    " WHERE k.expires_at > now() AND t.revoked_at IS NULL AND u.active"
    " AND (t.expires_at IS NULL OR t.expires_at > extract(epoch FROM now()))"};

static const struct statement use_token = {
    "gateway_token_use",
    "SELECT t.workspace_id, t.user_id, t.id, coalesce(u.bot_id, ''), coalesce(t.app_id, ''),"
    " t.type, u.is_admin, t.scopes, true, u.manual_away, coalesce(t.rate_limit, 0) FROM tokens t "
    "JOIN users u ON u.id = "
    "t.user_id"
    " WHERE t.digest = $1 AND t.revoked_at IS NULL AND u.active"
    " AND (t.expires_at IS NULL OR t.expires_at > extract(epoch FROM now()))"};

static const struct statement channels = {"gateway_channels",
                                          "SELECT c.id, c.seq, c.last_ts FROM channel_members m "
                                          "JOIN channel_heads c ON c.id = m.channel_id"
                                          " WHERE m.user_id = $1 AND m.active"};

// Whoever opens more at once waits: to read their channels and what they missed is work that the
// calls of others would wait for.
enum { OPENINGS_MAX = 8 };

struct ticket {
    struct list link; // in the gateway's opening_next
    struct gateway *gateway;
    struct connection *connection; // NULL once it is gone
    char reply[HANDSHAKE_REPLY_SIZE];
};

static const char expired[] =
    "{\"type\":\"error\",\"error\":{\"code\":1,\"msg\":\"Socket URL has expired\"}}";

void ticket_forget(struct connection *c)
{
    if (!c->ticket)
        return;
    struct ticket *ticket = TAKE(c->ticket);
    ticket->connection = NULL;
    if (!list_is_empty(&ticket->link)) {
        list_remove(&ticket->link);
        free(ticket);
    }
}

static void on_channels(void *arg, const struct store_outcome *outcome);
static void on_resume(void *arg, const struct store_outcome *outcome);

// The owner is known: takes its channels' state, as a socket or an event stream needs it.
static void channels_ask(struct ticket *ticket)
{
    CLEANUP_PARAMS struct params params = {0};
    struct connection *c = ticket->connection;
    params_text(&params, c->actor.user_id);
    if (c->sse)
        resume_params(c, &params);
    marks_note_first(c->gateway);
    c->gateway->openings++;
    gateway_ask(c->gateway);
    store_call(c->gateway->store, STORE_SYNC, c->sse ? &resume_statement : &channels, &params,
               c->sse ? on_resume : on_channels, ticket);
}

static void openings_go_on(struct gateway *gateway)
{
    while (gateway->openings < OPENINGS_MAX && !list_is_empty(&gateway->opening_next)) {
        struct ticket *ticket = LIST_ITEM(gateway->opening_next.next, struct ticket, link);
        list_remove(&ticket->link);
        channels_ask(ticket);
    }
}

// The channels are read. False: the gateway is gone, and the connection with it.
static bool opening_end(struct ticket *ticket)
{
    if (!gateway_answer(ticket->gateway))
        return false;
    ticket->gateway->openings--;
    openings_go_on(ticket->gateway);
    return true;
}

// Takes the connection out of the finished ticket.
static struct connection *ticket_end(struct ticket *ticket)
{
    struct connection *c = ticket->connection;
    if (c)
        c->ticket = NULL;
    return c;
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
}

// Takes the connection's place in all its channels. What the snapshot holds was there before hello;
// what a stream has sent already, too.
static int channels_enter(struct connection *c, const struct result *result)
{
    int r = user_enter(c);
    for (int row = 0; r >= 0 && row < result_rows(result); row++) {
        int64_t seq = result_int(result, row, 1);
        struct stream *stream =
            stream_follow(c->gateway, c->actor.workspace_id, result_text(result, row, 0), seq);
        if (!stream)
            return -ERROR_MEMORY;
        if (stream->sent_ts == 0)
            stream->sent_ts = result_int(result, row, 2);
        r = stream_enter(stream, c, seq, seq);
    }
    return r;
}

static void on_channels(void *arg, const struct store_outcome *outcome)
{
    struct ticket *ticket = arg;
    struct connection *c = opening_end(ticket) ? ticket_end(ticket) : NULL;
    if (c) {
        if (outcome->r < 0 || c->gateway->draining || channels_enter(c, outcome->result) < 0)
            connection_refuse(c, handshake_unavailable);
        else
            connection_open(c, ticket->reply);
    }
    free(ticket);
}

static void on_resume(void *arg, const struct store_outcome *outcome)
{
    struct ticket *ticket = arg;
    struct connection *c = opening_end(ticket) ? ticket_end(ticket) : NULL;
    if (c)
        sse_open(c, outcome);
    free(ticket);
}

static void on_used(void *arg, const struct store_outcome *outcome)
{
    struct ticket *ticket = arg;
    struct connection *c = ticket->connection;
    bool known = outcome->r == 0 && result_rows(outcome->result) > 0;
    if (c && known)
        actor_read(outcome->result, c);
    if (c && !c->sse && known)
        known = c->is_link == (c->actor.type == 'a');
    int refusal = c && c->sse ? sse_refusal(c, outcome->r, known) : 0;
    if (c && known && refusal == 0) {
        list_append(&c->gateway->opening_next, &ticket->link);
        openings_go_on(c->gateway);
        return;
    }
    (void)ticket_end(ticket);
    if (refusal != 0)
        sse_refuse(c, refusal);
    else if (c && outcome->r < 0)
        connection_refuse(c, handshake_unavailable);
    else if (c)
        connection_expire(c, ticket->reply, expired);
    free(ticket);
}

// NULL: the connection was refused.
static struct ticket *ticket_new(struct connection *c, const char *text, const char *reply,
                                 struct params *params)
{
    char digest[DIGEST_HEX_SIZE];
    struct ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket) {
        connection_refuse(c, handshake_unavailable);
        return NULL;
    }
    list_init(&ticket->link);
    ticket->gateway = c->gateway;
    ticket->connection = c;
    c->ticket = ticket;
    snprintf(ticket->reply, sizeof ticket->reply, "%s", reply);
    digest_sha256_hex(text, strlen(text), digest);
    params_text(params, digest);
    return ticket;
}

void ticket_use(struct connection *c, const char *ticket, const char *reply)
{
    CLEANUP_PARAMS struct params params = {0};
    struct ticket *used = ticket_new(c, ticket, reply, &params);
    if (used)
        store_change(c->gateway->store, ticket, &use, &params, on_used, used);
}

void ticket_use_token(struct connection *c, const char *token)
{
    CLEANUP_PARAMS struct params params = {0};
    struct ticket *used = ticket_new(c, token, "", &params);
    if (used)
        store_call(c->gateway->store, STORE_READ, &use_token, &params, on_used, used);
}
