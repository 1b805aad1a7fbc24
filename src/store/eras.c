// SPDX-License-Identifier: Apache-2.0
// Eras: to which incarnation (timeline) of the database a transaction id belongs.
#include "eras_internal.h"

#include <stdlib.h>

#include "base/memory.h"

const struct statement eras_statement = {"eras",
                                         "SELECT number, first_xid::text FROM eras_begin()"};

void eras_done(struct eras *eras)
{
    free(eras->items);
    *eras = (struct eras){0};
}

void eras_take(struct eras *eras, const struct result *result)
{
    int count = result_rows(result);
    eras->items = memory_must_resize(eras->items, (size_t)count + 1, sizeof *eras->items);
    for (int i = 0; i < count; i++)
        eras->items[i] =
            (struct era){.number = result_int(result, i, 0), .first_xid = result_int(result, i, 1)};
    eras->count = count;
}

struct era eras_last(const struct eras *eras)
{
    return eras->count > 0 ? eras->items[eras->count - 1] : (struct era){0};
}

bool eras_hold(const struct eras *eras, int64_t number, int64_t xid)
{
    for (int i = eras->count - 1; i >= 0; i--) {
        if (eras->items[i].number == number)
            return true;
        if (eras->items[i].first_xid < xid)
            return false;
    }
    return false;
}
