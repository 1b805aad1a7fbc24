// SPDX-License-Identifier: Apache-2.0
// Pages of a list: reads limit and cursor, and writes next_cursor.
#include "paging.h"

#include <stdlib.h>

enum { PAGE_DEFAULT = 100, PAGE_MAX = 1000 };

bool take_page(struct invocation *invocation, const char *kind, const char *prefixes,
               const char **ret_after)
{
    int64_t *limit = malloc(sizeof *limit);

    if (!limit) {
        invocation_fail(invocation, -ERROR_MEMORY);
        return false;
    }
    invocation->state = limit;
    *limit = PAGE_DEFAULT;
    *ret_after = "";
    if (!take_limit(invocation, PAGE_MAX, limit) || !take_cursor(invocation, kind, ret_after))
        return false;
    if ((*ret_after)[0] == '\0' || id_is_valid(*ret_after, prefixes))
        return true;
    invocation_fail_message(invocation, -ERROR_INVALID_CURSOR,
                            "cursor: must be the next_cursor of an earlier reply");
    return false;
}

static int64_t page_limit(const struct invocation *invocation)
{
    return *(const int64_t *)invocation->state;
}

int64_t paging_rows_wanted(const struct invocation *invocation)
{
    return page_limit(invocation) + 1;
}

int paging_rows(const struct invocation *invocation, const struct result *result)
{
    int64_t limit = page_limit(invocation);

    return result_rows(result) > limit ? (int)limit : result_rows(result);
}

void paging_end_write(struct json_writer *w, const struct invocation *invocation, const char *kind,
                      const struct result *result, int column)
{
    int rows = paging_rows(invocation, result);

    invocation_write_next_cursor(
        w, kind, rows < result_rows(result) ? result_text(result, rows - 1, column) : NULL);
}

void paging_reply(struct invocation *invocation, const char *name, const char *kind,
                  const struct result *result, int column)
{
    int rows = paging_rows(invocation, result);
    struct json_writer *w = invocation_open(invocation);

    json_key(w, invocation_key(invocation, name));
    json_open_array(w);
    for (int row = 0; row < rows; row++)
        if (!result_is_null(result, row, column))
            json_raw(w, result_text(result, row, column + 1),
                     result_length(result, row, column + 1));
    json_close_array(w);
    paging_end_write(w, invocation, kind, result, column);
    invocation_close(invocation);
}
