// SPDX-License-Identifier: Apache-2.0
// The subcommand push dead: lists, retries or deletes dead letters of pushes.
#include "app/commands.h"

#include "base/error.h"
#include "base/id.h"
#include "parts.h"
#include "store/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 1000, CURSOR_SIZE = 1024 };

static const struct statement LIST = {"push_dead_list",
                                      "SELECT cursor, entry FROM push_dead_list($1, $2, $3, $4)"};
static const struct statement RETRY = {"push_dead_retry",
                                       "SELECT count FROM push_dead_retry($1, $2)"};
static const struct statement DROP = {"push_dead_drop", "SELECT count FROM push_dead_drop($1, $2)"};

// Selects dead letters; NULL: all.
struct dead_scope {
    const char *workspace_id;
    const char *app;
};

static void scope_params(struct params *params, const struct dead_scope *scope)
{
    params_text(params, scope->workspace_id);
    params_text(params, scope->app);
}

static int dead_list(struct session *session, const struct dead_scope *scope)
{
    char after[CURSOR_SIZE] = "";
    int rows = PAGE;
    int r = 0;

    while (rows == PAGE && r >= 0) {
        CLEANUP_RESULT struct result *result = NULL;
        struct params params = {0};
        scope_params(&params, scope);
        params_text(&params, after);
        params_int(&params, PAGE);
        r = session_call(session, &LIST, &params, &result);
        rows = r < 0 ? 0 : result_rows(result);
        for (int row = 0; row < rows; row++)
            puts(result_text(result, row, 1));
        if (rows > 0)
            snprintf(after, sizeof after, "%s", result_text(result, rows - 1, 0));
    }
    return r;
}

static int dead_change(struct session *session, const struct statement *statement,
                       const struct dead_scope *scope, const char *done)
{
    CLEANUP_RESULT struct result *result = NULL;
    struct params params = {0};

    scope_params(&params, scope);
    int r = session_call(session, statement, &params, &result);
    if (r >= 0)
        printf("%" PRId64 " %s\n", result_int(result, 0, 0), done);
    return r;
}

static bool scope_take(struct dead_scope *scope, int count, char *const *arguments)
{
    for (; count >= 2; count -= 2, arguments += 2) {
        if (strcmp(arguments[0], "--workspace") == 0 && id_is_valid(arguments[1], "T"))
            scope->workspace_id = arguments[1];
        else if (strcmp(arguments[0], "--app") == 0)
            scope->app = arguments[1];
        else
            return false;
    }
    return count == 0;
}

void command_push_usage(FILE *out)
{
    fputs("usage: tidings push dead list|retry|drop [--workspace ID] [--app NAME]\n"
          "\n"
          "Dead letters: pushes to devices that the provider refused or did not accept within\n"
          "TIDINGS_PUSH_TTL_S. All, or those of one workspace or of push apps with that name.\n"
          "\n"
          "  list   prints one JSON object per line\n"
          "  retry  sends them again if their messages are still unread\n"
          "  drop   deletes them\n"
          "\n"
          "Exits with 2 on failure.\n",
          out);
}

int command_push(const struct settings *settings, int count, char *const *arguments)
{
    struct dead_scope scope = {0};
    struct session *session = NULL;
    const char *what = count >= 2 && strcmp(arguments[0], "dead") == 0 ? arguments[1] : "";
    bool lists = strcmp(what, "list") == 0;
    bool retries = strcmp(what, "retry") == 0;

    if ((!lists && !retries && strcmp(what, "drop") != 0) ||
        !scope_take(&scope, count - 2, arguments + 2)) {
        command_push_usage(stderr);
        return 2;
    }
    int r = parts_check_database(settings);
    if (r >= 0)
        r = session_new(settings->database_url, settings->statement_timeout_ms, &session);
    if (r >= 0)
        r = lists     ? dead_list(session, &scope)
            : retries ? dead_change(session, &RETRY, &scope, "tried again")
                      : dead_change(session, &DROP, &scope, "dropped");
    if (r < 0)
        fprintf(stderr, "push: %s\n", error_code(r));
    session_free(session);
    return r < 0 ? 2 : EXIT_SUCCESS;
}
