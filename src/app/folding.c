// SPDX-License-Identifier: Apache-2.0
// Stores the folded form of names that have none.
#include "folding.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/unicode.h"

#include <stdio.h>
#include <string.h>

enum { PAGE = 200 };

static const char *const tables[] = {"channels", "users"};
enum { TABLES = sizeof tables / sizeof tables[0] };

// The conditions are those of the indexes of migrations/023_names_folded.sql.
static const struct statement UNFOLDED[TABLES] = {
    {"channels_unfolded",
     "SELECT id, name FROM channels WHERE people IS NULL AND (folded IS NULL OR folded_from IS "
     "DISTINCT FROM name) AND id > $1 ORDER BY id LIMIT $2"},
    {"users_unfolded",
     "SELECT id, name FROM users WHERE (folded IS NULL OR folded_from IS DISTINCT "
     "FROM name) AND id > $1 ORDER BY id LIMIT $2"},
};
static const struct statement FOLD = {"names_fold",
                                      "SELECT id, like_id, is_new FROM names_fold($1, $2, $3, $4)"};

static void column_add(struct params *params, const struct result *page, int column)
{
    params_open_text_array(params);
    for (int row = 0; row < result_rows(page); row++)
        params_element_text(params, result_text(page, row, column));
    params_close_array(params);
}

static int folded_add(struct params *params, const struct result *page)
{
    params_open_text_array(params);
    for (int row = 0; row < result_rows(page); row++) {
        CLEANUP_FREE char *folded =
            unicode_fold(result_text(page, row, 1), result_length(page, row, 1));
        if (!folded)
            return -ERROR_MEMORY;
        params_element_text(params, folded);
    }
    params_close_array(params);
    return 0;
}

static int page_fold(const char *table, struct session *session, const struct result *page,
                     folding_pair_fn *fn, void *arg)
{
    CLEANUP_RESULT struct result *pairs = NULL;
    CLEANUP_PARAMS struct params params = {0};

    params_text(&params, table);
    column_add(&params, page, 0);
    column_add(&params, page, 1);
    int r = folded_add(&params, page);
    if (r >= 0)
        r = session_call(session, &FOLD, &params, &pairs);
    for (int row = 0; r >= 0 && row < result_rows(pairs); row++) {
        const struct folding_pair pair = {.table = table,
                                          .id = result_text(pairs, row, 0),
                                          .like_id = result_text(pairs, row, 1),
                                          .is_new = result_bool(pairs, row, 2)};
        fn(arg, &pair);
    }
    return r;
}

static int page_read(const struct folding *folding, struct session *session,
                     struct result **ret_page)
{
    struct params params = {0};

    params_text(&params, folding->after);
    params_int(&params, PAGE);
    return session_call(session, &UNFOLDED[folding->table], &params, ret_page);
}

int folding_step(struct folding *folding, struct session *session, folding_pair_fn *fn, void *arg)
{
    CLEANUP_RESULT struct result *page = NULL;
    int r = page_read(folding, session, &page);

    if (r < 0)
        return r;
    int rows = result_rows(page);
    if (rows > 0)
        r = page_fold(tables[folding->table], session, page, fn, arg);
    if (r < 0)
        return r;
    if (rows == PAGE) {
        snprintf(folding->after, sizeof folding->after, "%s", result_text(page, rows - 1, 0));
        return 1;
    }
    folding->after[0] = '\0';
    folding->table = (folding->table + 1) % TABLES;
    return folding->table != 0;
}
