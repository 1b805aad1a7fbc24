// SPDX-License-Identifier: Apache-2.0
// Migrations against a Postgres of its own: several at once, databases of other releases, steps
// that fail, and locks that others hold.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/store/migration_internal.h"
#include "base/error.h"
#include "postgres_group.h"
#include "store/migrate.h"
#include "store/session.h"
#include "wait_for.h"

enum { SESSION_TIMEOUT_MS = 10000, NEVER_MS = 600000, LOCK_MS = 100 };

static struct session *session;
static struct buffer report;

static struct migrate_options options_of(int64_t wait_s)
{
    return (struct migrate_options){
        .database_url = postgres.url, .lock_ms = LOCK_MS, .wait_s = wait_s};
}

// An empty database.
static int setup(void **state)
{
    char script[256];
    (void)state;
    snprintf(script, sizeof script,
             "SET client_min_messages = warning; DROP SCHEMA IF EXISTS %s CASCADE;"
             "DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public",
             embedded_functions_schema);
    buffer_init(&report, 65536);
    int r = session_new(postgres.url, SESSION_TIMEOUT_MS, &session);
    if (r < 0)
        return r;
    session_bare(session);
    return session_script(session, script);
}

static int teardown(void **state)
{
    (void)state;
    buffer_done(&report);
    session_free(session);
    return 0;
}

static int migrate(void)
{
    const struct migrate_options options = options_of(0);
    buffer_clear(&report);
    return migrate_run(&options, &report);
}

static bool reported(const char *text)
{
    return memmem(report.data, report.length, text, strlen(text)) != NULL;
}

static int64_t number_of(const struct statement *statement)
{
    CLEANUP_RESULT struct result *result = NULL;
    assert_int_equal(session_call(session, statement, NULL, &result), 0);
    return result_int(result, 0, 0);
}

static const struct statement noted = {"noted", "SELECT count(*) FROM schema_migrations"
                                                " WHERE sha256 IS NOT NULL"};
static const struct statement things = {
    "things", "SELECT (to_regclass('things') IS NOT NULL)::integer::bigint"};

static void script(const char *sql)
{
    assert_int_equal(session_script(session, sql), 0);
}

static void *migrate_in_thread(void *arg)
{
    const struct migrate_options options = options_of(0);
    struct buffer *its_report = arg;
    return migrate_run(&options, its_report) < 0 ? NULL : arg;
}

static void of_several_at_once_one_does_the_work(void **state)
{
    pthread_t threads[3];
    struct buffer reports[3];
    int worked = 0;
    (void)state;
    for (int i = 0; i < 3; i++) {
        buffer_init(&reports[i], 65536);
        assert_int_equal(pthread_create(&threads[i], NULL, migrate_in_thread, &reports[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        void *done = NULL;
        pthread_join(threads[i], &done);
        assert_non_null(done);
        worked += reports[i].length > 0;
        buffer_done(&reports[i]);
    }
    assert_int_equal(worked, 1);
    assert_int_equal(number_of(&noted), embedded_migrations_count);
    assert_int_equal(migrate(), 0);
    assert_int_equal(report.length, 0);
}

static void what_is_missing_is_told_and_not_made(void **state)
{
    enum migrate_need need = MIGRATE_NOTHING;
    (void)state;
    assert_int_equal(migrate_check(postgres.url, &report, &need), 0);
    assert_int_equal(need, MIGRATE_ROLLING);
    assert_true(reported("the database is empty") && reported("001_tables.sql"));
    assert_int_equal(migrate_serves(postgres.url, &report), -ERROR_REFUSED);
    assert_true(reported("run tidings migrate"));
    assert_int_equal(migrate(), 0);
    assert_int_equal(migrate_check(postgres.url, &report, &need), 0);
    assert_int_equal(need, MIGRATE_NOTHING);
    assert_int_equal(migrate_serves(postgres.url, &report), 0);
}

static void a_released_file_that_was_edited_is_named(void **state)
{
    enum migrate_need need;
    (void)state;
    assert_int_equal(migrate(), 0);
    script("UPDATE schema_migrations SET sha256 = repeat('0', 64) WHERE version = 14");
    assert_int_equal(migrate(), -ERROR_REFUSED);
    assert_true(reported("014_versions_in_use.sql: "));
    assert_int_equal(migrate_check(postgres.url, &report, &need), -ERROR_REFUSED);
    assert_int_equal(migrate_serves(postgres.url, &report), -ERROR_REFUSED);
}

static void a_file_of_nobody_is_named(void **state)
{
    (void)state;
    assert_int_equal(migrate(), 0);
    script("DELETE FROM schema_migrations WHERE version = 14;"
           "INSERT INTO schema_migrations (version, name) VALUES (0, '000_mine.sql')");
    assert_int_equal(migrate(), -ERROR_REFUSED);
    assert_true(reported("000_mine.sql: "));
}

static void note_later(int version, const char *release, bool before_runs)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "INSERT INTO schema_migrations (version, name, release, before_runs)"
             " VALUES (%d, '%d_later.sql', '%s', %s)",
             version, version, release, before_runs ? "true" : "false");
    script(sql);
}

static void a_database_of_the_next_release_is_run_on_where_that_says_so(void **state)
{
    enum migrate_need need = MIGRATE_STOPPED;
    (void)state;
    assert_int_equal(migrate(), 0);
    note_later(900, "9.0.0", true);
    note_later(901, "9.0.0", true);
    assert_int_equal(migrate_serves(postgres.url, &report), 0);
    assert_int_equal(migrate_check(postgres.url, &report, &need), 0);
    assert_int_equal(need, MIGRATE_NOTHING);
    assert_int_equal(migrate(), 0);

    note_later(902, "9.0.0", false);
    assert_int_equal(migrate(), -ERROR_REFUSED);
    assert_true(reported("902_later.sql") && !reported("901_later.sql"));
    assert_int_equal(migrate_serves(postgres.url, &report), -ERROR_REFUSED);
}

static void a_database_of_the_release_after_the_next_is_refused(void **state)
{
    (void)state;
    assert_int_equal(migrate(), 0);
    note_later(900, "9.0.0", true);
    note_later(901, "10.0.0", true);
    assert_int_equal(migrate(), -ERROR_REFUSED);
    assert_true(reported("901_later.sql") && reported("newer"));
    assert_int_equal(migrate_serves(postgres.url, &report), -ERROR_REFUSED);
}

// What release 0.1.0 leaves: its tables, and no digests.
static void become_0_1_0(void)
{
    char sql[2048];
    assert_int_equal(migrate(), 0);
    snprintf(
        sql, sizeof sql,
        "SET client_min_messages = warning; DROP SCHEMA %s CASCADE; DROP TABLE"
        " versions_in_use, month_expiring, month_channels, month_authors, hot_channels, hot_heads,"
        " hot_authors, outbox_start, push_jobs, push_turns, devices, push_apps, "
        "notification_settings, clock_seen, webhooks, auth_providers, files, "
        "file_shares, file_objects, file_grants, "
        "reactions, reaction_counts, "
        "reactions_gone, pins; ALTER TABLE messages DROP noted; DROP FUNCTION "
        "hot_channels_end; ALTER TABLE channels DROP "
        "is_hot, DROP folded, DROP folded_from; DROP INDEX channel_members_hearing_all;"
        " ALTER TABLE changes DROP name, DROP data, DROP message_xmin, DROP CONSTRAINT"
        " changes_kind_check, ADD CONSTRAINT"
        " changes_kind_check CHECK (kind IN ('edit', 'delete'));"
        " ALTER TABLE users DROP folded, DROP folded_from, DROP image_url, DROP profile, DROP "
        "changed, DROP provider_id, DROP external_id, DROP tokens_after; ALTER TABLE tokens DROP "
        "issued_at, DROP kept_until; DROP INDEX users_by_email; DROP INDEX apps_of_bot; DROP INDEX "
        "users_words; DROP TABLE emoji, streams;"
        " ALTER TABLE outbox DROP number; DROP SEQUENCE outbox_numbers; DELETE FROM"
        " schema_migrations WHERE version >= 14; ALTER TABLE schema_migrations DROP sha256, "
        "DROP release, DROP before_runs",
        embedded_functions_schema);
    script(sql);
}

static void tables_of_0_1_0_are_taken_over(void **state)
{
    enum migrate_need need = MIGRATE_NOTHING;
    (void)state;
    become_0_1_0();
    script("CREATE TABLE mine (n integer)"); // none of Tidings'
    assert_int_equal(migrate_serves(postgres.url, &report), -ERROR_REFUSED);
    assert_int_equal(migrate_check(postgres.url, &report, &need), 0);
    assert_int_equal(need, MIGRATE_ROLLING);
    assert_true(reported("of release 0.1.0"));
    assert_int_equal(migrate(), 0);
    assert_true(reported("adopted") && reported("post_batch")); // which is not there: a warning
    assert_int_equal(number_of(&noted), embedded_migrations_count);
    assert_int_equal(migrate_serves(postgres.url, &report), 0);
}

// As pg_dump does, which reads every table.
static void a_dump_of_0_1_0_is_waited_for_in_short_tries(void **state)
{
    struct session *dump;
    (void)state;
    become_0_1_0();
    assert_int_equal(session_new(postgres.url, SESSION_TIMEOUT_MS, &dump), 0);
    assert_int_equal(session_script(dump, "BEGIN; SELECT * FROM schema_migrations"), 0);
    assert_int_equal(migrate(), -ERROR_BUSY);
    assert_int_equal(session_script(dump, "COMMIT"), 0);
    session_free(dump);
    assert_int_equal(migrate(), 0);
}

static void other_tables_are_refused_with_what_differs(void **state)
{
    static const struct statement marked = {
        "marked", "SELECT count(*) FROM pg_attribute WHERE attrelid ="
                  " 'schema_migrations'::regclass AND attname = 'sha256'"};
    enum migrate_need need;
    (void)state;
    become_0_1_0();
    script(
        "DROP INDEX channels_made; ALTER TABLE channels ALTER topic DROP NOT NULL, ADD mine text;"
        "ALTER TABLE tokens DROP CONSTRAINT tokens_type_check; DROP TABLE change_log_start;"
        "ALTER TABLE messages ALTER deleted SET DEFAULT true");
    assert_int_equal(migrate(), -ERROR_REFUSED);
    assert_true(reported("index channels_made is missing"));
    assert_true(reported("column channels.topic is \"text collate"));
    assert_true(reported("column channels.mine is none of 0.1.0's"));
    assert_true(reported("constraint tokens_type_check is missing"));
    assert_true(reported("table change_log_start is missing"));
    assert_true(reported("column messages.deleted is"));
    assert_false(reported("users"));
    assert_int_equal(migrate_check(postgres.url, &report, &need), -ERROR_REFUSED);
    assert_int_equal(number_of(&marked), 0);
}

// A file that was not part of the program.
static struct embedded_file file_of(const char *text)
{
    return (struct embedded_file){
        .name = "700_things.sql", .data = text, .length = strlen(text), .sha256 = "7"};
}

#define HEADER "-- release: 7.0.0\n-- before: yes\n-- takes: a moment\n"

static int apply_by(struct session *by, const char *text, int64_t wait_s)
{
    const struct migrate_options options = options_of(wait_s);
    const struct embedded_file file = file_of(text);
    struct migration migration;
    assert_int_equal(migration_parse(&file, &migration), 0);
    return migration_apply(&migration, by, &options);
}

static int apply(const char *text, int64_t wait_s)
{
    return apply_by(session, text, wait_s);
}

static void headers_that_are_not_whole_are_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "SELECT 1",
        "-- release: 7.0.0\n-- before: yes\n-- locks: none\n",
        "-- release: 7.0.0\n-- before: perhaps\n-- locks: none\n-- takes: long\n",
        "-- release: 7.0.0\n-- before: yes\n-- locks: long\n-- takes: long\n",
        "-- release: 7.0.0.0.0.0.0.0.0.0.0.0.0.0.0\n-- before: yes\n-- locks: none\n-- takes: 1 "
        "s\n",
        "-- release: \n-- before: yes\n-- locks: none\n-- takes: long\n",
        "-- release: 7.0.0\n-- before: yes\n-- locks: none\nSELECT 1;\n-- takes: long\n",
    };
    struct migration migration;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const struct embedded_file file = file_of(texts[i]);
        assert_int_equal(migration_parse(&file, &migration), -ERROR_INVALID_ARGUMENTS);
    }
    const struct embedded_file file = file_of(HEADER "-- locks: short\nSELECT 1;\n");
    assert_int_equal(migration_parse(&file, &migration), 0);
    assert_int_equal(migration.version, 700);
    assert_string_equal(migration.release, "7.0.0");
    assert_string_equal(migration.takes, "a moment");
    assert_true(migration.before_runs && migration.locks && migration.in_transaction);
}

static void a_step_that_fails_leaves_nothing(void **state)
{
    static const char *const texts[] = {
        HEADER "-- locks: none\nCREATE TABLE things (n integer); SELECT 1 / 0;\n",
        HEADER "-- locks: short\nCREATE TABLE things (n integer); SELECT 1 / 0;\n",
    };
    (void)state;
    assert_int_equal(migrate(), 0);
    int64_t before = number_of(&noted);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(apply(texts[i], 0), -ERROR_INTERNAL);
        assert_int_equal(number_of(&things), 0);
    }
    assert_int_equal(number_of(&noted), before);
    assert_int_equal(apply(HEADER "-- locks: short\nCREATE TABLE things (n integer);\n", 0), 0);
    assert_int_equal(number_of(&things), 1);
    assert_int_equal(number_of(&noted), before + 1);
}

static void *apply_for_long(void *arg)
{
    int *r = arg;
    struct session *other;
    assert_int_equal(session_new(postgres.url, NEVER_MS, &other), 0);
    session_bare(other);
    *r = apply_by(other,
                  HEADER "-- locks: none\nCREATE TABLE things (n integer); SELECT pg_sleep(600);\n",
                  0);
    session_free(other);
    return NULL;
}

static void a_server_that_dies_in_the_middle_has_nothing_of_it(void **state)
{
    static const char ask[] = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    static const struct statement napping = {"napping", ask};
    pthread_t thread;
    int r = 0;
    (void)state;
    assert_int_equal(migrate(), 0);
    assert_int_equal(pthread_create(&thread, NULL, apply_for_long, &r), 0);
    WAIT_FOR(number_of(&napping) > 0);
    assert_int_equal(postgres_do("kill"), 0);
    pthread_join(thread, NULL);
    assert_int_equal(r, -ERROR_UNAVAILABLE);
    assert_int_equal(postgres_do("start"), 0);
    WAIT_FOR(session_script(session, "SELECT 1") == 0);
    assert_int_equal(number_of(&things), 0);
}

static void steps_outside_of_transactions_go_one_by_one(void **state)
{
    static const struct statement valid = {
        "valid", "SELECT count(*) FROM pg_index WHERE indexrelid = to_regclass('things_by_n')"
                 " AND indisvalid"};
    (void)state;
    assert_int_equal(migrate(), 0);
    script("CREATE TABLE things (n integer); INSERT INTO things VALUES (1), (1)");
    const char *text = HEADER "-- locks: none\n-- transaction: no\n"
                              "DROP INDEX CONCURRENTLY IF EXISTS things_by_n;\n"
                              "CREATE UNIQUE INDEX CONCURRENTLY things_by_n ON things (n);\n";
    assert_int_equal(apply(text, 0), -ERROR_INTERNAL); // leaves an index that is not valid
    assert_int_equal(number_of(&valid), 0);
    script("DELETE FROM things");
    assert_int_equal(apply(text, 0), 0);
    assert_int_equal(number_of(&valid), 1);
}

struct holder {
    pthread_barrier_t held;
    const char *nap;
};

// Holds a table for some time.
static void *hold(void *arg)
{
    struct holder *holder = arg;
    struct session *other;
    int r = session_new(postgres.url, SESSION_TIMEOUT_MS, &other);
    if (r >= 0)
        r = session_script(other, "BEGIN; LOCK TABLE channels IN ACCESS SHARE MODE");
    pthread_barrier_wait(&holder->held);
    if (r >= 0)
        r = session_script(other, holder->nap);
    session_free(other);
    return r < 0 ? NULL : arg;
}

// Somebody who needs the table again and again, and has a second each time.
struct reader {
    atomic_bool done;
    int reads;
    int failures;
};

static void *read_on(void *arg)
{
    struct reader *reader = arg;
    struct session *other;
    if (session_new(postgres.url, SESSION_TIMEOUT_MS, &other) < 0)
        return NULL;
    for (; !atomic_load(&reader->done); reader->reads++)
        if (session_script(other, "SET LOCAL lock_timeout = '1s'; SELECT count(*) FROM channels") <
            0)
            reader->failures++;
    session_free(other);
    return NULL;
}

static int apply_beside(const char *nap_sql, int64_t wait_s)
{
    struct holder holder = {.nap = nap_sql};
    pthread_t thread;
    void *held = NULL;
    assert_int_equal(pthread_barrier_init(&holder.held, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, hold, &holder), 0);
    pthread_barrier_wait(&holder.held);
    int r = apply(HEADER "-- locks: short\nALTER TABLE channels ADD mine text;\n", wait_s);
    pthread_join(thread, &held);
    pthread_barrier_destroy(&holder.held);
    assert_non_null(held);
    return r;
}

static void a_lock_is_waited_for_in_short_tries(void **state)
{
    (void)state;
    assert_int_equal(migrate(), 0);
    assert_int_equal(apply_beside("SELECT pg_sleep(2); COMMIT", 0), -ERROR_BUSY);
    assert_int_equal(apply_beside("SELECT pg_sleep(1); COMMIT", 30), 0);
}

static void others_do_not_wait_behind_a_step_that_waits(void **state)
{
    struct reader reader = {0};
    pthread_t thread;
    (void)state;
    assert_int_equal(migrate(), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_on, &reader), 0);
    int r = apply_beside("SELECT pg_sleep(4); COMMIT", 30);
    atomic_store(&reader.done, true);
    pthread_join(thread, NULL);
    assert_int_equal(r, 0);
    assert_true(reader.reads > 0);
    assert_int_equal(reader.failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(of_several_at_once_one_does_the_work),
        TEST(what_is_missing_is_told_and_not_made),
        TEST(a_released_file_that_was_edited_is_named),
        TEST(a_file_of_nobody_is_named),
        TEST(a_database_of_the_next_release_is_run_on_where_that_says_so),
        TEST(a_database_of_the_release_after_the_next_is_refused),
        TEST(tables_of_0_1_0_are_taken_over),
        TEST(a_dump_of_0_1_0_is_waited_for_in_short_tries),
        TEST(other_tables_are_refused_with_what_differs),
        TEST(headers_that_are_not_whole_are_refused),
        TEST(a_step_that_fails_leaves_nothing),
        TEST(a_server_that_dies_in_the_middle_has_nothing_of_it),
        TEST(steps_outside_of_transactions_go_one_by_one),
        TEST(a_lock_is_waited_for_in_short_tries),
        TEST(others_do_not_wait_behind_a_step_that_waits),
    };
    return cmocka_run_group_tests(tests, begin_group, end_group);
}
