// SPDX-License-Identifier: Apache-2.0
#include "position.h"

#include "base/error.h"
#include "base/id.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char mark[] = "e1.";

enum { ERA = 3, NUMBERS }; // only the era may be 0

void position_print(const struct position *position, char *ret_text)
{
    snprintf(ret_text, POSITION_SIZE, "%s%" PRId64 ".%" PRId64 ".%" PRId64 ".%" PRId64, mark,
             position->xid, position->heard_xid, position->seconds, position->era);
}

int position_parse(const char *text, size_t length, struct position *ret_position)
{
    int64_t numbers[NUMBERS];
    const char *end = text + length;
    if (length <= sizeof mark - 1 || memcmp(text, mark, sizeof mark - 1) != 0)
        return -ERROR_INVALID_ARGUMENTS;
    text += sizeof mark - 1;
    for (int i = 0; i < NUMBERS; i++) {
        const char *dot = i < NUMBERS - 1 ? memchr(text, '.', (size_t)(end - text)) : end;
        if (!dot || integer_parse(text, (size_t)(dot - text), i < ERA, INT64_MAX, &numbers[i]) < 0)
            return -ERROR_INVALID_ARGUMENTS;
        text = i < NUMBERS - 1 ? dot + 1 : end;
    }
    if (numbers[1] > numbers[0])
        return -ERROR_INVALID_ARGUMENTS;
    *ret_position = (struct position){numbers[0], numbers[1], numbers[2], numbers[3]};
    return 0;
}
