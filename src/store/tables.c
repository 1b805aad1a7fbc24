// SPDX-License-Identifier: Apache-2.0
// Compares the migrations recorded in a database with the program's own.
#include "tables_internal.h"

#include "base/check.h"
#include "base/error.h"
#include "store/session.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

// Release 0.1.0 recorded its functions as migrations with these numbers.
enum { FUNCTIONS_FIRST = 2, FUNCTIONS_LAST = 13 };

static const struct statement KINDS = {
    "tables_kinds",
    "SELECT to_regclass('schema_migrations') IS NOT NULL,"
    " EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = to_regclass('schema_migrations')"
    " AND a.attname = 'sha256'), to_regnamespace($1) IS NOT NULL"};
static const struct statement COUNT = {"tables_count", "SELECT count(*) FROM schema_migrations"};
static const struct statement NOTES = {
    "tables_notes", "SELECT version, name, sha256, release, before_runs FROM schema_migrations"
                    " ORDER BY version"};
enum { COLUMN_VERSION, COLUMN_NAME, COLUMN_SHA256, COLUMN_RELEASE, COLUMN_BEFORE_RUNS };

static struct migration migrations[MIGRATIONS_MAX];
static int migrations_count;
static int migrations_r;
static pthread_once_t migrations_once = PTHREAD_ONCE_INIT;

static void migrations_parse(void)
{
    ASSERT(embedded_migrations_count <= MIGRATIONS_MAX);
    for (size_t i = 0; i < embedded_migrations_count && migrations_r == 0; i++)
        migrations_r = migration_parse(&embedded_migrations[i], &migrations[migrations_count++]);
}

static const struct migration *migration_of(int64_t version)
{
    for (int i = 0; i < migrations_count; i++)
        if (migrations[i].version == version)
            return &migrations[i];
    return NULL;
}

static int64_t version_max(void)
{
    return migrations[migrations_count - 1].version;
}

static int refuse(struct buffer *report, const char *name, const char *why)
{
    buffer_append_format(report, "%s: %s\n", name, why);
    return -ERROR_REFUSED;
}

// A migration of a later release. This program may run on it if that release is the next one.
static int note_check_newer(const struct result *notes, int row, struct tables *tables,
                            struct buffer *report)
{
    const char *release = result_text(notes, row, COLUMN_RELEASE);
    bool is_next = !tables->is_newer || strcmp(tables->release, release) == 0;
    tables->is_newer = true;
    snprintf(tables->release, sizeof tables->release, "%s", release);
    if (is_next && result_bool(notes, row, COLUMN_BEFORE_RUNS))
        return 0;
    return refuse(report, result_text(notes, row, COLUMN_NAME),
                  "the database is of a newer release, on which this program does not run");
}

static int note_check(const struct result *notes, int row, struct tables *tables,
                      struct buffer *report)
{
    int64_t version = result_int(notes, row, COLUMN_VERSION);
    const struct migration *known = migration_of(version);
    const char *name = result_text(notes, row, COLUMN_NAME);
    if (!known && version > version_max())
        return note_check_newer(notes, row, tables, report);
    if (!known && (version < FUNCTIONS_FIRST || version > FUNCTIONS_LAST))
        return refuse(report, name, "the database has this migration, this program does not");
    if (!known)
        return 0;
    snprintf(tables->release, sizeof tables->release, "%s", known->release);
    if (strcmp(result_text(notes, row, COLUMN_SHA256), known->file->sha256) != 0)
        return refuse(report, known->file->name,
                      "the database has this migration in another form than this program");
    return 0;
}

static int notes_check(const struct result *notes, struct tables *tables, struct buffer *report)
{
    int worst = 0;
    for (int row = 0; row < result_rows(notes); row++) {
        int r = note_check(notes, row, tables, report);
        worst = r < 0 ? r : worst;
    }
    return worst;
}

static bool notes_have(const struct result *notes, int version)
{
    for (int row = 0; row < result_rows(notes); row++)
        if (result_int(notes, row, COLUMN_VERSION) == version)
            return true;
    return false;
}

static int notes_read(struct session *session, struct tables *tables, struct buffer *report)
{
    CLEANUP_RESULT struct result *notes = NULL;
    int r = session_call(session, &NOTES, NULL, &notes);
    if (r < 0)
        return r;
    for (int i = 0; i < migrations_count; i++)
        if (!notes_have(notes, migrations[i].version))
            tables->missing[tables->missing_count++] = &migrations[i];
    return notes_check(notes, tables, report);
}

// Adds all migrations from index `first` on to the missing ones.
static void miss_from(struct tables *tables, int first)
{
    for (int i = first; i < migrations_count; i++)
        tables->missing[tables->missing_count++] = &migrations[i];
}

// For tables without digests. No rows: whoever created the table got no further.
static int origin_read(struct session *session, enum tables_origin *ret_origin)
{
    CLEANUP_RESULT struct result *count = NULL;
    int r = session_call(session, &COUNT, NULL, &count);
    if (r < 0)
        return r;
    *ret_origin = result_int(count, 0, 0) > 0 ? TABLES_OF_0_1_0 : TABLES_NONE;
    return 0;
}

static int kinds_read(struct session *session, struct tables *ret_tables)
{
    CLEANUP_RESULT struct result *kinds = NULL;
    CLEANUP_PARAMS struct params params = {0};
    params_text(&params, embedded_functions_schema);
    int r = session_call(session, &KINDS, &params, &kinds);
    if (r < 0)
        return r;
    *ret_tables = (struct tables){.has_functions = result_bool(kinds, 0, 2)};
    if (result_bool(kinds, 0, 1))
        ret_tables->origin = TABLES_NOTED;
    else if (result_bool(kinds, 0, 0))
        return origin_read(session, &ret_tables->origin);
    return 0;
}

int tables_read(struct session *session, struct buffer *report, struct tables *ret_tables)
{
    pthread_once(&migrations_once, migrations_parse);
    int r = migrations_r < 0 ? migrations_r : kinds_read(session, ret_tables);
    if (r < 0)
        return r;
    if (ret_tables->origin == TABLES_NOTED)
        return notes_read(session, ret_tables, report);
    bool taken_over = ret_tables->origin == TABLES_OF_0_1_0;
    snprintf(ret_tables->release, sizeof ret_tables->release, "%s", taken_over ? "0.1.0" : "");
    miss_from(ret_tables, taken_over ? 1 : 0);
    return 0;
}
