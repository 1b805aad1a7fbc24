// SPDX-License-Identifier: Apache-2.0
// A result is libpq's own, under a name that keeps libpq out of the headers.
#include <libpq-fe.h>

#include "store/session.h"
#include "store/statement.h"

#include "postgres_internal.h"

static const PGresult *result_pg(const struct result *result)
{
    return (const PGresult *)(const void *)result;
}

struct result *result_of(PGresult *pg)
{
    return (struct result *)(void *)pg;
}

void result_free(struct result *result)
{
    PQclear((PGresult *)(void *)result);
}

int result_rows(const struct result *result)
{
    return PQntuples(result_pg(result));
}

int result_columns(const struct result *result)
{
    return PQnfields(result_pg(result));
}

// libpq prints a warning about each reading outside of the result.
static bool result_has(const struct result *result, int row, int column)
{
    return row >= 0 && column >= 0 && row < result_rows(result) && column < result_columns(result);
}

bool result_is_null(const struct result *result, int row, int column)
{
    return !result_has(result, row, column) || PQgetisnull(result_pg(result), row, column);
}

const char *result_text(const struct result *result, int row, int column)
{
    return result_has(result, row, column) ? PQgetvalue(result_pg(result), row, column) : "";
}

size_t result_length(const struct result *result, int row, int column)
{
    if (!result_has(result, row, column))
        return 0;
    return (size_t)PQgetlength(result_pg(result), row, column);
}

int64_t result_int(const struct result *result, int row, int column)
{
    const char *text = result_text(result, row, column);
    bool negative = *text == '-';
    uint64_t number = 0;
    for (text += negative; *text >= '0' && *text <= '9'; text++)
        number = number * 10 + (uint64_t)(*text - '0');
    return (int64_t)(negative ? 0 - number : number);
}

bool result_bool(const struct result *result, int row, int column)
{
    return result_text(result, row, column)[0] == 't';
}
