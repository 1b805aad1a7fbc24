// SPDX-License-Identifier: Apache-2.0
// Reads values from a result: libpq's own type, under a name that keeps libpq out of the headers.
#include <libpq-fe.h>

#include "store/session.h"
#include "store/statement.h"

#include "postgres_internal.h"

static const PGresult *result_pg(const struct result *result)
{
    return (const PGresult *)(const void *)result;
}

struct result *postgres_result(PGresult *pg)
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

// Out-of-range access would make libpq print a warning.
static bool result_has(const struct result *result, int row, int column)
{
    return row >= 0 && column >= 0 && row < result_rows(result) &&
           column < PQnfields(result_pg(result));
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

// Reads the number at *text and advances *text past it.
static int64_t take_int(const char **text)
{
    const char *at = *text;
    bool negative = *at == '-';
    uint64_t number = 0;
    for (at += negative; *at >= '0' && *at <= '9'; at++)
        number = number * 10 + (uint64_t)(*at - '0');
    *text = at;
    return (int64_t)(negative ? 0 - number : number);
}

int64_t result_int(const struct result *result, int row, int column)
{
    const char *text = result_text(result, row, column);
    return take_int(&text);
}

void result_fields(const struct result *result, int row, int column, int count,
                   struct result_field *ret_fields)
{
    const PGresult *pg = result_pg(result);
    for (int i = 0; i < count; i++) {
        ret_fields[i].text = PQgetvalue(pg, row, column + i);
        ret_fields[i].length = (size_t)PQgetlength(pg, row, column + i);
    }
}

int64_t result_field_int(const struct result_field *field)
{
    const char *text = field->text;
    return take_int(&text);
}

// Postgres' text format: {1,2,3}
int result_ints(const struct result *result, int row, int column, int64_t *ret_numbers, int max)
{
    const char *text = result_text(result, row, column);
    int count = 0;
    while ((text[0] == '{' && text[1] != '}') || text[0] == ',') {
        text++;
        int64_t number = take_int(&text);
        if (count < max)
            ret_numbers[count] = number;
        count++;
    }
    return count;
}

bool result_bool(const struct result *result, int row, int column)
{
    return result_text(result, row, column)[0] == 't';
}
