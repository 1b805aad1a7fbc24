// SPDX-License-Identifier: Apache-2.0
#include "store/migrate.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/embedded.h"
#include "base/error.h"
#include "base/log.h"
#include "store/session.h"

enum {
    STATEMENT_TIMEOUT_MS = 30 * 60 * 1000, // a migration may rewrite a table
    SCRIPT_MAX_BYTES = 4 * 1024 * 1024,
    LOCK_KEY = 0x71d195 // any number that nobody else locks
};

static const struct statement lock = {"migrate_lock", "SELECT pg_advisory_lock($1)"};
static const struct statement applied = {"migrate_applied",
                                         "SELECT version FROM schema_migrations ORDER BY version"};

static const struct statement table_exists = {
    "migrate_table", "SELECT to_regclass('schema_migrations') IS NOT NULL"};
static const struct statement current = {"migrate_current",
                                         "SELECT max(version) FROM schema_migrations"};

enum { CURRENT_TIMEOUT_MS = 3000 };

static void session_freep(struct session **session)
{
    session_free(*session);
}

// The number that a migration's name starts with; 0 when there is none.
static int version_of(const char *name)
{
    int version = 0;
    for (; isdigit((unsigned char)*name) && version < 100000; name++)
        version = version * 10 + (*name - '0');
    return version;
}

int migrate_version(void)
{
    int highest = 0;
    for (size_t i = 0; i < embedded_migrations_count; i++)
        if (version_of(embedded_migrations[i].name) > highest)
            highest = version_of(embedded_migrations[i].name);
    return highest;
}

// Taken before anything is looked at, and held until the session ends.
static int migrate_lock(struct session *session)
{
    CLEANUP_PARAMS struct params params = {0};
    CLEANUP_RESULT struct result *result = NULL;
    params_int(&params, LOCK_KEY);
    int r = session_call(session, &lock, &params, &result);
    if (r < 0)
        return r;
    return session_script(session, "SET client_min_messages = warning;" // not that it exists
                                   "CREATE TABLE IF NOT EXISTS schema_migrations ("
                                   "version integer PRIMARY KEY, name text NOT NULL, "
                                   "applied_at timestamptz NOT NULL DEFAULT now())");
}

static bool result_has_version(const struct result *result, int version)
{
    for (int row = 0; row < result_rows(result); row++)
        if (result_int(result, row, 0) == version)
            return true;
    return false;
}

// The file and the note that it was applied, in one transaction.
static int migrate_apply(struct session *session, const struct embedded_file *file)
{
    CLEANUP(buffer_done) struct buffer script;
    buffer_init(&script, SCRIPT_MAX_BYTES);
    buffer_append(&script, file->data, file->length);
    buffer_append_format(&script,
                         "\n;INSERT INTO schema_migrations (version, name) VALUES (%d, '%s')",
                         version_of(file->name), file->name);
    CLEANUP_FREE char *sql = buffer_take_text(&script);
    if (!sql)
        return -ERROR_MEMORY;
    int r = session_script(session, sql);
    log_write(r < 0 ? LOG_ERROR : LOG_INFO, "migrate", "%s: %s", file->name,
              r < 0 ? "failed" : "applied");
    return r;
}

static int migrate_missing(struct session *session, int *ret_applied)
{
    CLEANUP_RESULT struct result *result = NULL;
    int r = session_call(session, &applied, NULL, &result);
    if (r < 0)
        return r;
    int count = 0;
    for (size_t i = 0; i < embedded_migrations_count; i++) {
        if (result_has_version(result, version_of(embedded_migrations[i].name)))
            continue;
        r = migrate_apply(session, &embedded_migrations[i]);
        if (r < 0)
            return r;
        count++;
        for (size_t f = 0; f < embedded_functions_count && i == 0; f++) {
            r = session_script(session, embedded_functions[f].data);
            if (r < 0)
                return r;
        }
    }
    *ret_applied = count;
    return 0;
}

int migrate_run(const char *database_url, int *ret_applied)
{
    CLEANUP(session_freep) struct session *session = NULL;
    int r = session_new(database_url, STATEMENT_TIMEOUT_MS, &session);
    if (r < 0)
        return r;
    r = migrate_lock(session);
    if (r < 0)
        return r;
    return migrate_missing(session, ret_applied);
}

int migrate_current(const char *database_url, int *ret_version)
{
    CLEANUP(session_freep) struct session *session = NULL;
    CLEANUP_RESULT struct result *exists = NULL;
    CLEANUP_RESULT struct result *version = NULL;

    int r = session_new(database_url, CURRENT_TIMEOUT_MS, &session);
    if (r < 0)
        return r;
    r = session_call(session, &table_exists, NULL, &exists);
    if (r < 0)
        return r;
    if (result_bool(exists, 0, 0)) {
        r = session_call(session, &current, NULL, &version);
        if (r < 0)
            return r;
    }
    *ret_version = version ? (int)result_int(version, 0, 0) : 0;
    return 0;
}
