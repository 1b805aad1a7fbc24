// SPDX-License-Identifier: Apache-2.0
// The subcommand migrate: runs or checks the migrations and prints a report.
#include "app/commands.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/version.h"
#include "store/migrate.h"

#include <stdlib.h>
#include <string.h>

enum { REPORT_MAX_BYTES = 65536, EXIT_ROLLING = 3, EXIT_STOPPED = 4 };

void command_migrate_usage(FILE *out)
{
    fputs("usage: tidings migrate [--check]\n"
          "\n"
          "Upgrades the database at TIDINGS_DATABASE_URL to this version: applies missing table\n"
          "migrations, and adds this version's functions next to those of other versions, whose\n"
          "instances keep running. Can be repeated, and run on several machines at once. Exits\n"
          "with 0, or with 1 if this version cannot migrate the database or a step failed;\n"
          "completed steps stay.\n"
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

static int run(const struct settings *settings, struct buffer *report)
{
    const struct migrate_options options = {
        .database_url = settings->database_url,
        .lock_ms = settings->migrate_lock_ms,
        .wait_s = settings->migrate_wait_s,
    };

    int r = migrate_run(&options, report);
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
