// SPDX-License-Identifier: Apache-2.0
// The subcommands unread verify and unread rebuild: compare the counts in Redis with Postgres, or
// rewrite them, and show progress.
#include "app/commands.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "parts.h"
#include "unread/audit.h"
#include "unread/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATEMENT_TIMEOUT_MS = 60000, BAR_WIDTH = 30, BAR_EVERY_MS = 100, LINE_EVERY_MS = 5000 };

struct auditing {
    uint32_t tag;
    int64_t pairs; // estimated total
    bool bar;
    int64_t printed_ms;
};

static void bar_print(const struct auditing *auditing, const struct audit_totals *totals)
{
    int64_t done = totals->pairs < auditing->pairs ? totals->pairs : auditing->pairs;
    int filled = auditing->pairs > 0 ? (int)(BAR_WIDTH * done / auditing->pairs) : BAR_WIDTH;

    fprintf(stderr, "\r[%.*s%*s] %" PRId64 " of %" PRId64 ", %" PRId64 " wrong", filled,
            "##############################", BAR_WIDTH - filled, "", totals->pairs,
            auditing->pairs, totals->drifted);
}

static bool progress_print(void *arg, const struct audit_totals *totals)
{
    struct auditing *auditing = CAST(auditing, arg);
    int64_t now_ms = clock_monotonic_ms();

    if (now_ms - auditing->printed_ms < (auditing->bar ? BAR_EVERY_MS : LINE_EVERY_MS))
        return true;
    auditing->printed_ms = now_ms;
    if (auditing->bar)
        bar_print(auditing, totals);
    else
        fprintf(stderr, "%" PRId64 " of %" PRId64 " pairs\n", totals->pairs, auditing->pairs);
    return true;
}

// At most one of --workspace, --channel, --user.
static bool scope_take(struct audit_scope *scope, int count, char *const *arguments)
{
    *scope = (struct audit_scope){"", "", ""};
    if (count == 0)
        return true;
    if (count != 2)
        return false;
    const char **ids[] = {&scope->workspace_id, &scope->channel_id, &scope->user_id};
    static const char *const names[] = {"--workspace", "--channel", "--user"};
    static const char *const prefixes[] = {"T", "CGD", "UW"};
    for (size_t i = 0; i < 3; i++)
        if (strcmp(arguments[0], names[i]) == 0) {
            *ids[i] = arguments[1];
            return id_is_valid(arguments[1], prefixes[i]);
        }
    return false;
}

static int audit_report(const struct audit_options *options, struct auditing *auditing)
{
    struct audit_totals totals = {0};
    int64_t started_ms = clock_monotonic_ms();

    int r = audit_size(options, &auditing->pairs);
    if (r == -ERROR_INVALID_ARGUMENTS) {
        const struct audit_scope *scope = &options->scope;
        fprintf(stderr, "unread: there is no %s%s%s\n", scope->workspace_id, scope->channel_id,
                scope->user_id);
        return 2;
    }
    if (r >= 0)
        r = audit_run(options, &totals);
    if (auditing->bar) {
        bar_print(auditing, &totals);
        fputc('\n', stderr);
    }
    if (r < 0) {
        fprintf(stderr, "unread: %s\n", error_code(r));
        return 2;
    }
    printf("%" PRId64 " pairs, %" PRId64 " known to Redis, %" PRId64 " wrong, %" PRId64
           " written, %" PRId64 " ms\n",
           totals.pairs, totals.known, totals.drifted, totals.repaired,
           clock_monotonic_ms() - started_ms);
    return options->mode == AUDIT_VERIFY && totals.drifted > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

void command_unread_usage(FILE *out)
{
    fputs(
        "usage: tidings unread verify|rebuild [--workspace ID|--channel ID|--user ID]\n"
        "\n"
        "  verify   compares unread counts in Redis with Postgres; exits with 1 if any is wrong\n"
        "  rebuild  corrects wrong counts in Redis and writes missing ones\n"
        "\n"
        "Covers all members, or those of one workspace, channel or user. Exits with 2 on failure:\n"
        "Postgres or Redis is unreachable, or the ID does not exist.\n",
        out);
}

int command_unread(const struct settings *settings, int count, char *const *arguments)
{
    struct auditing auditing = {.tag = TAG(auditing), .bar = isatty(STDERR_FILENO)};
    struct audit_options options = {.progress = progress_print, .arg = &auditing};
    const struct cache_options cache_options = parts_cache_options(settings);
    bool verifies = count > 0 && strcmp(arguments[0], "verify") == 0;

    if ((!verifies && (count == 0 || strcmp(arguments[0], "rebuild") != 0)) ||
        !scope_take(&options.scope, count - 1, arguments + 1)) {
        command_unread_usage(stderr);
        return 2;
    }
    options.mode = verifies ? AUDIT_VERIFY : AUDIT_REBUILD;
    unread_cap_set(settings->unread_max);
    int r = parts_check_database(settings);
    if (r >= 0)
        r = session_new(settings->database_url, STATEMENT_TIMEOUT_MS, &options.session);
    if (r >= 0)
        r = pipeline_new(&cache_options, &options.pipeline);
    int code = r < 0 ? 2 : audit_report(&options, &auditing);
    if (r < 0)
        fprintf(stderr, "unread: %s\n", error_code(r));
    pipeline_free(options.pipeline);
    session_free(options.session);
    return code;
}
