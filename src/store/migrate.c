// SPDX-License-Identifier: Apache-2.0
// Brings a database up to this program's version: runs migrations and installs functions.
#include "store/migrate.h"

#include "base/error.h"
#include "base/version.h"
#include "postgres_internal.h"
#include "store/session.h"
#include "tables_internal.h"

#include <unistd.h>

enum {
    STATEMENT_TIMEOUT_MS = 24 * 3600 * 1000, // enough to build an index on a large table
    READ_TIMEOUT_MS = 3000,
    LOCK_PAUSE_MS = 50,
    LOCK_KEY = 0x71d195 // any number not locked by others; release 0.1.0 uses it too
};

static const struct statement LOCK = {"migrate_lock", "SELECT pg_try_advisory_lock($1)::integer"};
static const struct statement PARTITIONS = {"migrate_partitions",
                                            "SELECT message_partitions_make()"};
static const struct statement DIFFERING = {
    "migrate_differing",
    "SELECT string_agg(f, ', '), count(*) FROM functions_of_0_1_0_differing() f"};

static void session_freep(struct session **session)
{
    session_free(*session);
}

static int session_open_bare(const char *database_url, int64_t timeout_ms,
                             struct session **ret_session)
{
    int r = session_new(database_url, timeout_ms, ret_session);
    if (r >= 0)
        session_bare(*ret_session);
    return r;
}

static int lock_try(struct session *session, bool *ret_taken)
{
    CLEANUP_PARAMS struct params params = {0};
    CLEANUP_RESULT struct result *result = NULL;
    params_int(&params, LOCK_KEY);
    int r = session_call(session, &LOCK, &params, &result);
    if (r >= 0)
        *ret_taken = result_int(result, 0, 0) == 1;
    return r;
}

// Takes a lock that is held until the session ends; concurrent runs then find the work done. Polls:
// a waiting statement would hold a snapshot, and CREATE INDEX CONCURRENTLY waits for snapshots.
static int lock_take(struct session *session)
{
    bool taken = false;
    int r = lock_try(session, &taken);
    while (r >= 0 && !taken) {
        usleep(LOCK_PAUSE_MS * 1000);
        r = lock_try(session, &taken);
    }
    return r;
}

static int notes_make(struct session *session)
{
    return session_script(session,
                          "SET LOCAL client_min_messages = warning;" // suppresses "already exists"
                          "CREATE TABLE IF NOT EXISTS schema_migrations (version integer PRIMARY"
                          " KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT "
                          "now());" NOTES_COLUMNS_SQL);
}

// Prepares the tables for the missing migrations.
static int tables_begin(struct session *session, const struct migrate_options *options,
                        const struct tables *tables, struct buffer *report)
{
    if (tables->origin == TABLES_NONE)
        return notes_make(session);
    if (tables->origin != TABLES_OF_0_1_0)
        return 0;
    int r = tables_compare(session, report);
    if (r >= 0)
        r = tables_take_over(session, options);
    if (r >= 0)
        buffer_append_text(report, "adopted the database of release 0.1.0\n");
    return r;
}

static void failure_report(const char *what, int r, bool in_transaction, struct buffer *report)
{
    const char *how = "failed: run again to continue";
    if (r == -ERROR_UNAVAILABLE)
        how = "was in progress when the connection was lost: run again to continue";
    else if (in_transaction)
        how = "failed and was rolled back";
    buffer_append_format(report, "%s %s\n", what, how);
}

static int migrations_apply(struct session *session, const struct migrate_options *options,
                            const struct tables *tables, struct buffer *report)
{
    for (int i = 0; i < tables->missing_count; i++) {
        const struct migration *migration = tables->missing[i];
        int r = migration_apply(migration, session, options);
        if (r < 0) {
            failure_report(migration->file->name, r, migration->in_transaction, report);
            return r;
        }
        buffer_append_format(report, "%s applied\n", migration->file->name);
    }
    return 0;
}

// One transaction, which begins by creating the schema: the schema exists only if it is complete.
static int functions_make(struct session *session)
{
    CLEANUP(buffer_done) struct buffer script = BUFFER(SCRIPT_MAX_BYTES);
    buffer_append_format(&script, "CREATE SCHEMA %s; " SEARCH_PATH_SQL ";\n",
                         embedded_functions_schema, embedded_functions_schema, "true");
    for (size_t i = 0; i < embedded_functions_count; i++) {
        buffer_append(&script, embedded_functions[i].data, embedded_functions[i].length);
        buffer_append_text(&script, ";\n");
    }
    buffer_append_format(&script,
                         "INSERT INTO versions_in_use (functions, library, release, knows_hot)"
                         " VALUES ('%s', '', '%s', true) ON CONFLICT (functions, library) DO UPDATE"
                         " SET made_at = now(), used_at = now()",
                         embedded_functions_schema, TIDINGS_VERSION);
    return migration_script_run(session, &script);
}

static int functions_apply(struct session *session, struct buffer *report)
{
    int r = functions_make(session);
    if (r < 0)
        failure_report(embedded_functions_schema, r, true, report);
    else
        buffer_append_format(report, "functions %s applied\n", embedded_functions_schema);
    return r;
}

// Only warns: this version brings its own functions.
static int functions_of_0_1_0_check(struct session *session, struct buffer *report)
{
    CLEANUP_RESULT struct result *differing = NULL;
    int r = session_call(session, &DIFFERING, NULL, &differing);
    if (r >= 0 && result_int(differing, 0, 1) > 0)
        buffer_append_format(report,
                             "warning: these functions differ from those of release 0.1.0, so its"
                             " instances may fail: %s\n",
                             result_text(differing, 0, 0));
    return r;
}

// The steps that need this version's functions.
static int tables_end(const char *database_url, const struct tables *tables, struct buffer *report)
{
    CLEANUP(session_freep) struct session *session = NULL;
    CLEANUP_RESULT struct result *result = NULL;
    int r = session_new(database_url, READ_TIMEOUT_MS, &session);
    if (r >= 0)
        r = session_call(session, &PARTITIONS, NULL, &result);
    if (r == -ERROR_BUSY) // the table is locked: housekeeping creates them later
        r = 0;
    if (r >= 0 && tables->origin == TABLES_OF_0_1_0)
        r = functions_of_0_1_0_check(session, report);
    return r;
}

int migrate_run(const struct migrate_options *options, struct buffer *report)
{
    CLEANUP(session_freep) struct session *session = NULL;
    struct tables tables;
    int r = session_open_bare(options->database_url, STATEMENT_TIMEOUT_MS, &session);
    if (r >= 0)
        r = lock_take(session);
    if (r >= 0)
        r = tables_read(session, report, &tables);
    if (r >= 0)
        r = tables_begin(session, options, &tables, report);
    if (r >= 0)
        r = migrations_apply(session, options, &tables, report);
    if (r >= 0 && !tables.has_functions)
        r = functions_apply(session, report);
    if (r >= 0)
        r = tables_end(options->database_url, &tables, report);
    return r;
}

static enum migrate_need missing_report(const struct migration *migration, bool is_first,
                                        struct buffer *report)
{
    bool stops = !migration->before_runs && !is_first;
    buffer_append_format(report, "missing: %s (release %s): takes %s; %s\n", migration->file->name,
                         migration->release, migration->takes,
                         stops ? "stop instances of the previous release first"
                               : "running instances are not affected");
    return stops ? MIGRATE_STOPPED : MIGRATE_ROLLING;
}

static enum migrate_need need_report(const struct tables *tables, struct buffer *report)
{
    enum migrate_need need = tables->has_functions ? MIGRATE_NOTHING : MIGRATE_ROLLING;
    buffer_append_format(report, "the database is %s%s, this program is %s\n",
                         tables->release[0] ? "of release " : "empty", tables->release,
                         TIDINGS_VERSION);
    for (int i = 0; i < tables->missing_count; i++) {
        bool is_first = tables->origin == TABLES_NONE;
        enum migrate_need one = missing_report(tables->missing[i], is_first, report);
        need = one > need ? one : need;
    }
    if (!tables->has_functions)
        buffer_append_format(report,
                             "missing: functions %s: takes a second; running instances are not"
                             " affected\n",
                             embedded_functions_schema);
    if (need == MIGRATE_NOTHING)
        buffer_append_text(report, "nothing is missing\n");
    return need;
}

// Takes no lock, so it does not wait for a concurrent migration.
static int tables_inspect(const char *database_url, struct buffer *report, bool compares,
                          struct tables *ret_tables)
{
    CLEANUP(session_freep) struct session *session = NULL;
    int r = session_open_bare(database_url, READ_TIMEOUT_MS, &session);
    if (r >= 0)
        r = tables_read(session, report, ret_tables);
    if (r >= 0 && compares && ret_tables->origin == TABLES_OF_0_1_0)
        r = tables_compare(session, report);
    return r;
}

int migrate_check(const char *database_url, struct buffer *report, enum migrate_need *ret_need)
{
    struct tables tables;
    int r = tables_inspect(database_url, report, true, &tables);
    if (r < 0)
        return r;
    *ret_need = need_report(&tables, report);
    return 0;
}

int migrate_serves(const char *database_url, struct buffer *report)
{
    struct tables tables;
    int r = tables_inspect(database_url, report, false, &tables);
    if (r < 0)
        return r;
    if (tables.missing_count == 0 && tables.has_functions)
        return 0;
    (void)need_report(&tables, report);
    buffer_append_text(report, "run tidings migrate\n");
    return -ERROR_REFUSED;
}
