// SPDX-License-Identifier: Apache-2.0
// The subcommand migrate: runs or checks the migrations and prints a report.
#include "app/commands.h"

#include "base/buffer.h"
#include "base/check.h"
#include "base/error.h"
#include "base/version.h"
#include "folding.h"
#include "store/migrate.h"

#include <stdlib.h>
#include <string.h>

enum {
    REPORT_MAX_BYTES = 65536,
    EXIT_ROLLING = 3,
    EXIT_STOPPED = 4,
    FOLDING_TIMEOUT_MS = 60 * 1000,
    PAIRS_MAX = 100 // told of
};

void command_migrate_usage(FILE *out)
{
    fputs("usage: tidings migrate [--check]\n"
          "\n"
          "Upgrades the database at TIDINGS_DATABASE_URL to this version: applies missing table\n"
          "migrations, and adds this version's functions next to those of other versions, whose\n"
          "instances keep running. Can be repeated, and run on several machines at once. Tells\n"
          "of channels, and of users, whose names look the same. Exits with 0, or with 1 if this\n"
          "version cannot migrate the database or a step failed; completed steps stay.\n"
          "\n"
          "  --check  changes nothing; prints what is missing, whether instances of the previous\n"
          "           release keep running, and how long the migration takes. Exits with\n"
          "           0  nothing is missing\n"
          "           3  something is missing; instances of the previous release keep running\n"
          "           4  something is missing; stop instances of the previous release first\n"
          "           1  the database cannot be migrated, or is unreachable\n",
          out);
}

static int report_print(int r, const struct buffer *report)
{
    FILE *out = r < 0 ? stderr : stdout;

    fwrite(report->data, 1, report->length, out);
    if (r == -ERROR_BUSY)
        fputs("migrate: another session holds a required lock: end its transaction, or try again\n",
              out);
    else if (r < 0)
        fprintf(out, "migrate: %s\n",
                r == -ERROR_REFUSED ? "the database was not changed" : error_code(r));
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int check(const struct settings *settings, struct buffer *report)
{
    static const int exits[] = {[MIGRATE_NOTHING] = EXIT_SUCCESS,
                                [MIGRATE_ROLLING] = EXIT_ROLLING,
                                [MIGRATE_STOPPED] = EXIT_STOPPED};
    enum migrate_need need = MIGRATE_NOTHING;

    int r = migrate_check(settings->database_url, report, &need);
    int status = report_print(r, report);
    return status == EXIT_SUCCESS ? exits[need] : status;
}

struct pairs {
    uint32_t tag;
    struct buffer *report;
    int count;
};

static void pair_report(void *arg, const struct folding_pair *pair)
{
    struct pairs *pairs = CAST(pairs, arg);

    if (++pairs->count <= PAIRS_MAX)
        buffer_append_format(pairs->report, "warning: %s %s and %s have names that look the same\n",
                             pair->table, pair->id, pair->like_id);
}

// Folds all names that are not yet, and tells of pairs.
static int names_fold(const struct settings *settings, struct buffer *report)
{
    struct session *session;
    struct folding folding = {0};
    struct pairs pairs = {TAG(pairs), report, 0};
    int r = session_new(settings->database_url, FOLDING_TIMEOUT_MS, &session);

    if (r < 0)
        return r;
    do {
        r = folding_step(&folding, session, pair_report, &pairs);
    } while (r > 0);
    if (pairs.count > PAIRS_MAX)
        buffer_append_format(report, "warning: and %d more pairs\n", pairs.count - PAIRS_MAX);
    session_free(session);
    return r;
}

static int run(const struct settings *settings, struct buffer *report)
{
    const struct migrate_options options = {
        .database_url = settings->database_url,
        .lock_ms = settings->migrate_lock_ms,
        .wait_s = settings->migrate_wait_s,
    };

    int r = migrate_run(&options, report);
    if (r >= 0)
        r = names_fold(settings, report);
    if (r >= 0)
        buffer_append_format(report, "the database is ready for release %s\n", TIDINGS_VERSION);
    return report_print(r, report);
}

int command_migrate(const struct settings *settings, int count, char *const *arguments)
{
    CLEANUP(buffer_done) struct buffer report = BUFFER(REPORT_MAX_BYTES);
    bool checks = count == 1 && strcmp(arguments[0], "--check") == 0;

    if (count > 0 && !checks) {
        command_migrate_usage(stderr);
        return 2;
    }
    return checks ? check(settings, &report) : run(settings, &report);
}
