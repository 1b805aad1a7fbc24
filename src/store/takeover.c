// SPDX-License-Identifier: Apache-2.0
// Takes over a database of release 0.1.0. That release recorded no digests, and its files were
// edited after databases had been created from them. So the actual tables are compared, in the
// server's own description, with tables that the current file creates in a temporary schema, which
// is rolled back.
#include "tables_internal.h"

#include "base/error.h"
#include "store/session.h"

#include <inttypes.h>

enum { ROWS_SHOWN_MAX = 50 };

#define EXPECTED_SCHEMA "tidings_expected"

// The objects of a schema's tables, without the schema's name. Partitions are excluded: they come
// and go.
#define OBJECTS                                                                                    \
    "SELECT n.nspname AS schema, c.relname AS owner, o.name, replace(o.definition,"                \
    " quote_ident(n.nspname) || '.', '') AS definition"                                            \
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN LATERAL ("          \
    "  SELECT 'table ' || c.relname AS name, concat_ws(' ', c.relkind, c.relpersistence,"          \
    "   c.reloptions::text, pg_get_partkeydef(c.oid)) AS definition"                               \
    "  UNION ALL SELECT 'column ' || c.relname || '.' || a.attname, concat_ws(' ',"                \
    "   format_type(a.atttypid, a.atttypmod), 'collate ' || a.attcollation::regcollation,"         \
    "   CASE WHEN a.attnotnull THEN 'not null' END,"                                               \
    "   'default ' || (SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d"                   \
    "    WHERE d.adrelid = c.oid AND d.adnum = a.attnum))"                                         \
    "   FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"      \
    "  UNION ALL SELECT 'index ' || x.relname, pg_get_indexdef(x.oid)"                             \
    "   FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid WHERE i.indrelid = c.oid"          \
    "  UNION ALL SELECT 'constraint ' || t.conname, pg_get_constraintdef(t.oid)"                   \
    "   FROM pg_constraint t WHERE t.conrelid = c.oid AND t.contype IN ('p', 'u', 'c', 'f', 'x'))" \
    " o WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition"

// Only objects of expected tables. Other tables do not concern us.
static const struct statement DIFFERENCES = {
    "tables_differences",
    "WITH objects AS MATERIALIZED (" OBJECTS "),"
    " expected AS (SELECT * FROM objects WHERE schema = '" EXPECTED_SCHEMA "'),"
    " found AS (SELECT * FROM objects WHERE schema = $1"
    " AND owner IN (SELECT owner FROM expected))"
    " SELECT coalesce(e.name, f.name) || CASE"
    " WHEN f.name IS NULL THEN ' is missing'"
    " WHEN e.name IS NULL THEN ' is none of 0.1.0''s'"
    " ELSE ' is \"' || f.definition || '\" and not \"' || e.definition || '\"' END"
    " FROM expected e FULL JOIN found f ON f.name = e.name"
    " WHERE e.definition IS DISTINCT FROM f.definition AND (e.name LIKE 'table %'"
    " OR coalesce(e.owner, f.owner) IN (SELECT owner FROM found)) ORDER BY 1"};

static const struct statement SCHEMA = {"tables_schema",
                                        "SELECT relnamespace::regnamespace::name FROM pg_class"
                                        " WHERE oid = 'schema_migrations'::regclass"};

static int schema_find(struct session *session, struct params *ret_params)
{
    CLEANUP_RESULT struct result *result = NULL;
    int r = session_call(session, &SCHEMA, NULL, &result);
    if (r < 0)
        return r;
    params_text(ret_params, result_text(result, 0, 0));
    return 0;
}

static int expected_make(struct session *session)
{
    CLEANUP(buffer_done) struct buffer script = BUFFER(SCRIPT_MAX_BYTES);
    buffer_append_text(&script, "BEGIN; CREATE SCHEMA " EXPECTED_SCHEMA
                                "; SET LOCAL search_path = " EXPECTED_SCHEMA ";\n");
    buffer_append_text(&script, embedded_migrations[0].data);
    buffer_append_text(&script, "; SET LOCAL search_path = pg_catalog");
    return migration_script_run(session, &script);
}

static int differences_report(const struct result *differences, struct buffer *report)
{
    int count = result_rows(differences);
    if (count == 0)
        return 0;
    buffer_append_text(report, "the tables were not made by release 0.1.0:\n");
    for (int row = 0; row < count && row < ROWS_SHOWN_MAX; row++)
        buffer_append_format(report, "  %s\n", result_text(differences, row, 0));
    if (count > ROWS_SHOWN_MAX)
        buffer_append_format(report, "  and %d more\n", count - ROWS_SHOWN_MAX);
    return -ERROR_REFUSED;
}

int tables_compare(struct session *session, struct buffer *report)
{
    CLEANUP_RESULT struct result *differences = NULL;
    CLEANUP_PARAMS struct params params = {0};
    int r = schema_find(session, &params);
    if (r >= 0)
        r = expected_make(session);
    if (r >= 0)
        r = session_call(session, &DIFFERENCES, &params, &differences);
    int ended = session_script(session, "ROLLBACK");
    if (r < 0 || ended < 0)
        return r < 0 ? r : ended;
    return differences_report(differences, report);
}

static int notes_extend(const void *arg, struct session *session, int64_t lock_ms)
{
    CLEANUP(buffer_done) struct buffer script = BUFFER(SCRIPT_MAX_BYTES);
    (void)arg;
    buffer_append_format(&script, "SET LOCAL lock_timeout = %" PRId64 ";", lock_ms);
    buffer_append_format(
        &script,
        NOTES_COLUMNS_SQL
        ";UPDATE schema_migrations SET release = '0.1.0', before_runs = version > 1;"
        "UPDATE schema_migrations SET sha256 = '%s' WHERE version = 1",
        embedded_migrations[0].sha256);
    return migration_script_run(session, &script);
}

int tables_take_over(struct session *session, const struct migrate_options *options)
{
    return migration_lock_retry(options, "schema_migrations", notes_extend, NULL, session);
}
