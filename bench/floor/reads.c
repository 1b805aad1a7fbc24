// SPDX-License-Identifier: Apache-2.0
// What an answer that is read from Postgres costs at the least: one prepared select a request, in
// one connection's pipeline, and its rows' bytes behind a bare reply. No token is checked.
#include "floor.h"

#include <stdlib.h>
#include <string.h>

#define UNDER_WAY_MAX 16384 // a power of two

// The least that channels.info shows: the channel with its head, and the caller's cursor in it.
static const char info_sql[] =
    "SELECT c.id, c.name, c.type, c.is_archived, c.creator, c.created, c.topic, c.purpose,"
    " c.member_count, c.seq, c.ord, c.latest_ts, c.latest_user, c.latest_preview,"
    " m.ts, m.seq, m.ord, m.own, m.posts, m.mention_ts"
    " FROM channels c JOIN channel_members m ON m.channel_id = c.id"
    " WHERE c.id = $1 AND m.user_id = $2 AND m.active";

// The least that unread.sync shows, of all channels of the caller's or of some.
#define SYNC_SQL                                                                                   \
    "SELECT c.id, c.name, c.type, c.seq, c.ord, c.latest_ts, c.latest_user, c.latest_preview,"     \
    " m.ts, m.seq, m.ord, m.own, m.posts, m.muted, m.mention_ts"                                   \
    " FROM channel_members m JOIN channels c ON c.id = m.channel_id"                               \
    " WHERE m.user_id = $2 AND m.active"
static const char sync_sql[] = SYNC_SQL " AND $1::text IS NULL";
static const char some_sql[] = SYNC_SQL " AND m.channel_id = ANY ($1::text[])";

static PGconn *pg;
static struct conn *under_way[UNDER_WAY_MAX];
static unsigned asked, answered;

// {"channel":C}: of that one. {"some":"{C,…}"}: what of these unread.sync shows. Else of all.
static void on_request(struct conn *conn)
{
    const struct input_user *user = floor_find(conn->token);
    const char *channel = conn_text(conn, "channel"), *some = conn_text(conn, "some");
    const char *values[] = {channel ? channel : some, user->id};

    floor_expect(pg, PQsendQueryPrepared(pg,
                                         channel ? "info"
                                         : some  ? "some"
                                                 : "sync",
                                         2, values, NULL, NULL, 0) &&
                         PQpipelineSync(pg));
    if (asked - answered == UNDER_WAY_MAX)
        tool_die("more than %d requests at once", UNDER_WAY_MAX);
    under_way[asked++ % UNDER_WAY_MAX] = conn;
}

// Nothing in the set-up's rows needs an escape.
static void answer(struct conn *conn, const PGresult *result)
{
    static char *reply;
    static size_t room;
    size_t need = 64;
    char *to;

    for (int row = 0; row < PQntuples(result); row++, need += 3)
        for (int column = 0; column < PQnfields(result); column++)
            need += (size_t)PQgetlength(result, row, column) + 3;
    if (need > room)
        reply = tool_grow(reply, room = 2 * need);
    to = stpcpy(reply, "{\"ok\":true,\"rows\":[");
    for (int row = 0; row < PQntuples(result); row++) {
        to = stpcpy(to, row == 0 ? "[" : ",[");
        for (int column = 0; column < PQnfields(result); column++)
            to = stpcpy(
                stpcpy(stpcpy(to, column == 0 ? "\"" : ",\""), PQgetvalue(result, row, column)),
                "\"");
        to = stpcpy(to, "]");
    }
    to = stpcpy(to, "]}");
    conn_reply(conn, reply, (size_t)(to - reply));
}

static void on_postgres(void)
{
    floor_expect(pg, PQconsumeInput(pg));
    while (asked != answered && !PQisBusy(pg)) {
        PGresult *result = PQgetResult(pg);
        ExecStatusType status = PQresultStatus(result);

        if (status == PGRES_TUPLES_OK)
            answer(under_way[answered++ % UNDER_WAY_MAX], result);
        else
            floor_expect(pg, !result || status == PGRES_PIPELINE_SYNC);
        PQclear(result);
    }
}

void floor_reads(const struct tool_args *args)
{
    pg = floor_postgres(args, "SET jit = off; SET max_parallel_workers_per_gather = 0");
    floor_input(args, NULL);
    PQclear(PQprepare(pg, "sync", sync_sql, 0, NULL));
    PQclear(PQprepare(pg, "some", some_sql, 0, NULL));
    PQclear(PQprepare(pg, "info", info_sql, 0, NULL));
    floor_expect(pg, PQenterPipelineMode(pg));
    server_watch(PQsocket(pg), on_postgres);
    server_run(tool_args_number(args, "port", 9000, 1, UINT16_MAX), on_request, NULL);
}
