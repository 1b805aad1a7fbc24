// SPDX-License-Identifier: Apache-2.0
#include "position.h"

#include "base/error.h"
#include "base/id.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char mark[] = "e1.";

void position_print(const struct position *position, char *ret_text)
{
    (void)snprintf(ret_text, POSITION_SIZE, "%s%" PRId64 ".%" PRId64 ".%" PRId64, mark,
                   position->xid, position->heard_xid, position->seconds);
}

int position_parse(const char *text, size_t length, struct position *ret_position)
{
    int64_t numbers[3];
    const char *end = text + length;
    if (length <= sizeof mark - 1 || memcmp(text, mark, sizeof mark - 1) != 0)
        return -ERROR_INVALID_ARGUMENTS;
    text += sizeof mark - 1;
    for (int i = 0; i < 3; i++) {
        const char *dot = i < 2 ? memchr(text, '.', (size_t)(end - text)) : end;
        if (!dot || integer_parse(text, (size_t)(dot - text), 1, INT64_MAX, &numbers[i]) < 0)
            return -ERROR_INVALID_ARGUMENTS;
        text = i < 2 ? dot + 1 : end;
    }
    if (numbers[1] > numbers[0])
        return -ERROR_INVALID_ARGUMENTS;
    *ret_position = (struct position){numbers[0], numbers[1], numbers[2]};
    return 0;
}
