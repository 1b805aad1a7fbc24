// SPDX-License-Identifier: Apache-2.0
// Ids, ts and whole numbers: what is accepted prints as what came.
#include "base/error.h"
#include "base/id.h"
#include "base/versioned.h"
#include "fuzz.h"

#include <inttypes.h>
#include <stdio.h>

static void id_check(const char *text)
{
    if (!id_is_valid(text, "CGD"))
        return;
    assert(strlen(text) >= 3 && strlen(text) <= ID_LENGTH_MAX);
    assert(strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == strlen(text));
}

static void ts_check(const char *text, size_t size)
{
    int64_t ts_us = -1, moment_us = -1;
    char printed[TS_SIZE];
    int r = ts_parse(text, size, &ts_us);
    int moment_r = ts_parse_moment(text, size, &moment_us);
    if (moment_r == 0)
        assert(moment_us >= 0);
    if (r < 0)
        return;
    ts_print(ts_us, printed);
    assert(size == TS_SIZE - 1 && memcmp(printed, text, size) == 0);
    assert(moment_r == 0 && moment_us == ts_us);
}

static void integer_check(const char *text, size_t size, int64_t min, int64_t max)
{
    int64_t number;
    char printed[32];
    if (integer_parse(text, size, min, max, &number) < 0)
        return;
    int length = snprintf(printed, sizeof printed, "%" PRId64, number);
    assert(number >= min && number <= max);
    assert((size_t)length == size && memcmp(printed, text, size) == 0);
}

static void versioned_check(const char *text, size_t size)
{
    int64_t numbers[3] = {-1, -1, -1};
    int version = versioned_parse(text, size, 's', numbers, 3);
    assert(version != 0);
    for (int i = 0; i < 3 && version > 0; i++)
        assert(version == 1 ? numbers[i] >= 0 : numbers[i] == -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    char *text = fuzz_text(data, size);
    id_check(text);
    free(text);
    ts_check(bytes, size);
    integer_check(bytes, size, INT64_MIN, INT64_MAX);
    integer_check(bytes, size, 0, 1000);
    versioned_check(bytes, size);
    return 0;
}
