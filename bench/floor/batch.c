// SPDX-License-Identifier: Apache-2.0
#include "batch.h"

#include "../common/tool.h"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

// Of a text and of a bigint, in Postgres' catalogue.
#define OID_BIGINT 20
#define OID_TEXT 25
#define MESSAGE_PARAMS 5
#define CURSOR_PARAMS 3
#define PARAM_COUNT 8

#define SESSION_SQL "SET plan_cache_mode = force_generic_plan; SET jit = off"

static const char messages_sql[] =
    "DROP TABLE IF EXISTS floor_messages;"
    "CREATE TABLE floor_messages (channel_id text COLLATE \"C\" NOT NULL, ts bigint NOT NULL,"
    " seq bigint NOT NULL, user_id text COLLATE \"C\" NOT NULL, body text NOT NULL,"
    " PRIMARY KEY (channel_id, ts));"
    "DROP TABLE IF EXISTS floor_channels;"
    "CREATE TABLE floor_channels (id text COLLATE \"C\" PRIMARY KEY, ts bigint NOT NULL, seq "
    "bigint NOT NULL)"
    " WITH (fillfactor = 50);" SESSION_SQL;

static const char cursors_sql[] =
    "DROP TABLE IF EXISTS floor_cursors;"
    "CREATE TABLE floor_cursors (channel_id text COLLATE \"C\" NOT NULL,"
    " user_id text COLLATE \"C\" NOT NULL, ts bigint NOT NULL, PRIMARY KEY (channel_id, user_id))"
    " WITH (fillfactor = 50);" SESSION_SQL;

static const char insert_sql[] =
    "INSERT INTO floor_messages (channel_id, ts, seq, user_id, body)"
    " SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[])";

// The same, and the heads of its channels.
static const char whole_sql[] =
    "WITH moved AS (UPDATE floor_channels c SET ts = h.ts, seq = h.seq"
    " FROM unnest($6::text[], $7::bigint[], $8::bigint[]) AS h (id, ts, seq) WHERE c.id = h.id) "
    "INSERT INTO floor_messages (channel_id, ts, seq, user_id, body)"
    " SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[])";

// The first of a member inserts it.
static const char cursor_sql[] =
    "INSERT INTO floor_cursors (channel_id, ts, user_id)"
    " SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])"
    " ON CONFLICT (channel_id, user_id) DO UPDATE SET ts = excluded.ts";

static const char channel_sql[] = "INSERT INTO floor_channels VALUES ($1, 0, 0)";

// A parameter in Postgres' binary form of an array.
struct array {
    char *bytes;
    size_t len, room;
};

static const struct {
    const char *tables_sql;
    const char *sql;
    int param_count;
} kinds[] = {
    [BATCH_POSTS] = {messages_sql, insert_sql, MESSAGE_PARAMS},
    [BATCH_POSTS_HEADS] = {messages_sql, whole_sql, PARAM_COUNT},
    [BATCH_CURSORS] = {cursors_sql, cursor_sql, CURSOR_PARAMS},
};

struct batch_writer {
    enum batch_kind kind;
    PGconn *pg;
    PGconn *channels_pg; // for new channels, waited for; NULL: no heads are kept
    bool busy;
    bool unsent;
    struct array arrays[PARAM_COUNT];
};

static void array_put(struct array *array, const void *bytes, size_t len)
{
    if (array->len + len > array->room) {
        array->room = (array->len + len) * 2;
        array->bytes = tool_grow(array->bytes, array->room);
    }
    memcpy(array->bytes + array->len, bytes, len);
    array->len += len;
}

static void array_put_int(struct array *array, size_t value)
{
    uint32_t big_endian = htonl((uint32_t)value);

    array_put(array, &big_endian, sizeof(big_endian));
}

// Header: one dimension, no NULLs, the type, the length, the lower bound.
static void array_start(struct array *array, size_t oid, size_t count)
{
    array->len = 0;
    array_put_int(array, 1);
    array_put_int(array, 0);
    array_put_int(array, oid);
    array_put_int(array, count);
    array_put_int(array, 1);
}

static void array_put_text(struct array *array, const char *text)
{
    size_t len = strlen(text);

    array_put_int(array, len);
    array_put(array, text, len);
}

static void array_put_bigint(struct array *array, int64_t value)
{
    uint64_t big_endian = __builtin_bswap64((uint64_t)value);

    array_put_int(array, sizeof(big_endian));
    array_put(array, &big_endian, sizeof(big_endian));
}

static void expect(PGconn *pg, PGresult *result, ExecStatusType wanted)
{
    if (PQresultStatus(result) != wanted)
        tool_die("postgres: %s", PQerrorMessage(pg));
    PQclear(result);
}

static PGconn *connect_to(const char *database_url)
{
    PGconn *pg = PQconnectdb(database_url);

    if (PQstatus(pg) != CONNECTION_OK)
        tool_die("postgres: %s", PQerrorMessage(pg));
    return pg;
}

struct batch_writer *batch_writer_new(const char *database_url, enum batch_kind kind)
{
    struct batch_writer *writer = tool_alloc(1, sizeof(*writer));

    writer->kind = kind;
    writer->pg = connect_to(database_url);
    if (kind == BATCH_POSTS_HEADS)
        writer->channels_pg = connect_to(database_url);
    expect(writer->pg, PQexec(writer->pg, kinds[kind].tables_sql), PGRES_COMMAND_OK);
    expect(writer->pg, PQprepare(writer->pg, "batch", kinds[kind].sql, 0, NULL), PGRES_COMMAND_OK);
    if (PQsetnonblocking(writer->pg, 1) != 0)
        tool_die("postgres: %s", PQerrorMessage(writer->pg));
    return writer;
}

void batch_writer_free(struct batch_writer *writer)
{
    PQfinish(writer->pg);
    PQfinish(writer->channels_pg);
    for (size_t i = 0; i < PARAM_COUNT; i++)
        free(writer->arrays[i].bytes);
    free(writer);
}

void batch_writer_add_channel(struct batch_writer *writer, const char *channel)
{
    if (writer->channels_pg)
        expect(writer->channels_pg,
               PQexecParams(writer->channels_pg, channel_sql, 1, NULL, &channel, NULL, NULL, 0),
               PGRES_COMMAND_OK);
}

int batch_writer_socket(const struct batch_writer *writer, bool *ret_writes)
{
    *ret_writes = writer->unsent;
    return PQsocket(writer->pg);
}

bool batch_writer_is_busy(const struct batch_writer *writer)
{
    return writer->busy;
}

static void flush(struct batch_writer *writer)
{
    int r = PQflush(writer->pg);

    if (r < 0)
        tool_die("postgres: %s", PQerrorMessage(writer->pg));
    writer->unsent = r > 0;
}

static void fill_messages(struct array *arrays, const struct batch_row *rows, size_t count)
{
    static const size_t types[MESSAGE_PARAMS] = {OID_TEXT, OID_BIGINT, OID_BIGINT, OID_TEXT,
                                                 OID_TEXT};

    for (size_t i = 0; i < MESSAGE_PARAMS; i++)
        array_start(&arrays[i], types[i], count);
    for (size_t i = 0; i < count; i++) {
        array_put_text(&arrays[0], rows[i].channel);
        array_put_bigint(&arrays[1], rows[i].ts);
        array_put_bigint(&arrays[2], rows[i].seq);
        array_put_text(&arrays[3], rows[i].user);
        array_put_text(&arrays[4], rows[i].body);
    }
}

static void fill_heads(struct array *arrays, const struct batch_row *rows, size_t count)
{
    size_t heads = 0;

    for (size_t i = 0; i < count; i++)
        heads += rows[i].is_head;
    array_start(&arrays[0], OID_TEXT, heads);
    array_start(&arrays[1], OID_BIGINT, heads);
    array_start(&arrays[2], OID_BIGINT, heads);
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].is_head)
            continue;
        array_put_text(&arrays[0], rows[i].channel);
        array_put_bigint(&arrays[1], rows[i].ts);
        array_put_bigint(&arrays[2], rows[i].seq);
    }
}

static void fill_cursors(struct array *arrays, const struct batch_row *rows, size_t count)
{
    array_start(&arrays[0], OID_TEXT, count);
    array_start(&arrays[1], OID_BIGINT, count);
    array_start(&arrays[2], OID_TEXT, count);
    for (size_t i = 0; i < count; i++) {
        array_put_text(&arrays[0], rows[i].channel);
        array_put_bigint(&arrays[1], rows[i].ts);
        array_put_text(&arrays[2], rows[i].user);
    }
}

static void fill(struct batch_writer *writer, const struct batch_row *rows, size_t count)
{
    if (writer->kind == BATCH_CURSORS) {
        fill_cursors(writer->arrays, rows, count);
        return;
    }
    fill_messages(writer->arrays, rows, count);
    if (writer->kind == BATCH_POSTS_HEADS)
        fill_heads(writer->arrays + MESSAGE_PARAMS, rows, count);
}

void batch_writer_send(struct batch_writer *writer, const struct batch_row *rows, size_t count)
{
    const char *values[PARAM_COUNT];
    int lens[PARAM_COUNT], formats[PARAM_COUNT];
    int param_count = kinds[writer->kind].param_count;

    fill(writer, rows, count);
    for (int i = 0; i < param_count; i++) {
        values[i] = writer->arrays[i].bytes;
        lens[i] = (int)writer->arrays[i].len;
        formats[i] = 1;
    }
    if (!PQsendQueryPrepared(writer->pg, "batch", param_count, values, lens, formats, 0))
        tool_die("postgres: %s", PQerrorMessage(writer->pg));
    writer->busy = true;
    flush(writer);
}

bool batch_writer_step(struct batch_writer *writer)
{
    PGresult *result;

    if (writer->unsent)
        flush(writer);
    if (!PQconsumeInput(writer->pg))
        tool_die("postgres: %s", PQerrorMessage(writer->pg));
    while (writer->busy && !PQisBusy(writer->pg)) {
        result = PQgetResult(writer->pg);
        writer->busy = result != NULL;
        if (result)
            expect(writer->pg, result, PGRES_COMMAND_OK);
        if (!result)
            return true;
    }
    return false;
}
