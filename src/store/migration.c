// SPDX-License-Identifier: Apache-2.0
// Runs one migration: parses its header, limits its locks, and retries it.
#include "migration_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/log.h"
#include "store/migrate.h"
#include "store/session.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    VERSION_MAX = 100000,
    PAUSE_MIN_MS = 500, // lets others proceed between two attempts
    PAUSE_SPAN_MS = 1000,
    MS_PER_S = 1000
};

// The number at the start of a file name; 0 if there is none.
static int version_of(const char *name)
{
    int version = 0;
    for (; isdigit((unsigned char)*name) && version < VERSION_MAX; name++)
        version = version * 10 + (*name - '0');
    return version;
}

// Copies the header's value of `key`. False if it is absent or too long.
static bool header_find(const char *text, const char *key, char *ret_value, size_t size)
{
    char start[32];
    int start_length = snprintf(start, sizeof start, "-- %s: ", key);
    for (; strncmp(text, "--", 2) == 0; text += strcspn(text, "\n") + 1) {
        if (strncmp(text, start, (size_t)start_length) != 0)
            continue;
        size_t length = strcspn(text + start_length, "\n");
        if (length == 0 || length >= size)
            return false;
        memcpy(ret_value, text + start_length, length);
        ret_value[length] = '\0';
        return true;
    }
    return false;
}

static bool header_choose(const char *text, const char *key, const char *yes, const char *no,
                          bool *ret_choice)
{
    char value[16];
    if (!header_find(text, key, value, sizeof value))
        return false;
    *ret_choice = strcmp(value, yes) == 0;
    return *ret_choice || strcmp(value, no) == 0;
}

int migration_parse(const struct embedded_file *file, struct migration *ret_migration)
{
    struct migration migration = {.tag = TAG(migration),
                                  .file = file,
                                  .version = version_of(file->name),
                                  .in_transaction = true};
    char transaction[16];
    bool whole = migration.version > 0 &&
                 header_find(file->data, "release", migration.release, sizeof migration.release) &&
                 header_choose(file->data, "before", "yes", "no", &migration.before_runs) &&
                 header_choose(file->data, "locks", "short", "none", &migration.locks) &&
                 header_find(file->data, "takes", migration.takes, sizeof migration.takes);
    if (!whole) {
        log_write(LOG_ERROR, "migrate", "%s: incomplete header", file->name);
        return -ERROR_INVALID_ARGUMENTS;
    }
    if (header_find(file->data, "transaction", transaction, sizeof transaction))
        migration.in_transaction = strcmp(transaction, "no") != 0;
    *ret_migration = migration;
    return 0;
}

static void record_append(const struct migration *migration, struct buffer *script)
{
    buffer_append_format(script,
                         "\n;INSERT INTO schema_migrations (version, name, sha256, release,"
                         " before_runs) VALUES (%d, '%s', '%s', '%s', %s)",
                         migration->version, migration->file->name, migration->file->sha256,
                         migration->release, migration->before_runs ? "true" : "false");
}

// Posts wait for a statement that holds a lock, and for one that waits for a lock. As a single DO
// statement, the whole migration is subject to the timeout.
static void script_append_bounded(const struct migration *migration, int64_t lock_ms,
                                  struct buffer *script)
{
    buffer_append_format(script,
                         "SET LOCAL lock_timeout = %" PRId64 "; SET LOCAL statement_timeout ="
                         " %" PRId64 "; DO $migration$ BEGIN EXECUTE $statements$",
                         lock_ms, 2 * lock_ms);
    buffer_append(script, migration->file->data, migration->file->length);
    buffer_append_text(script, "$statements$; END $migration$");
}

int migration_script_run(struct session *session, struct buffer *script)
{
    CLEANUP_FREE char *sql = buffer_take_text(script);
    return sql ? session_script(session, sql) : -ERROR_MEMORY;
}

static int apply_whole(const struct migration *migration, struct session *session, int64_t lock_ms)
{
    CLEANUP(buffer_done) struct buffer script = BUFFER(SCRIPT_MAX_BYTES);
    if (migration->locks)
        script_append_bounded(migration, lock_ms, &script);
    else
        buffer_append(&script, migration->file->data, migration->file->length);
    record_append(migration, &script);
    return migration_script_run(session, &script);
}

// Runs the statements one after another. A statement ends at a ";" that ends a line.
static int apply_singly(const struct migration *migration, struct session *session)
{
    const char *at = migration->file->data;
    CLEANUP(buffer_done) struct buffer script = BUFFER(SCRIPT_MAX_BYTES);
    for (const char *end = strstr(at, ";\n"); end; end = strstr(at, ";\n")) {
        buffer_append(&script, at, (size_t)(end - at));
        int r = migration_script_run(session, &script);
        if (r < 0)
            return r;
        at = end + 2;
    }
    record_append(migration, &script);
    return migration_script_run(session, &script);
}

static void pause_at_random(void)
{
    uint16_t random;
    random_fill(&random, sizeof random);
    usleep((unsigned)(PAUSE_MIN_MS + random % PAUSE_SPAN_MS) * 1000);
}

int migration_lock_retry(const struct migrate_options *options, const char *what, lock_try_fn *try,
                         const void *arg, struct session *session)
{
    int64_t until_ms = clock_monotonic_ms() + options->wait_s * MS_PER_S;
    for (;;) {
        int r = try(arg, session, options->lock_ms);
        if (r != -ERROR_BUSY || clock_monotonic_ms() >= until_ms)
            return r;
        log_write(LOG_INFO, "migrate", "%s: waiting for a lock held by another session", what);
        pause_at_random();
    }
}

static int apply_once(const void *arg, struct session *session, int64_t lock_ms)
{
    const struct migration *migration = CAST_CONST(migration, arg);
    return migration->in_transaction ? apply_whole(migration, session, lock_ms)
                                     : apply_singly(migration, session);
}

int migration_apply(const struct migration *migration, struct session *session,
                    const struct migrate_options *options)
{
    return migration_lock_retry(options, migration->file->name, apply_once, migration, session);
}
