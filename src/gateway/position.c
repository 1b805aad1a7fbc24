// SPDX-License-Identifier: Apache-2.0
#include "position.h"

#include "base/error.h"
#include "base/versioned.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

enum { NUMBERS = 4 };

void position_print(const struct position *position, char *ret_text)
{
    snprintf(ret_text, POSITION_SIZE, "e1.%" PRId64 ".%" PRId64 ".%" PRId64 ".%" PRId64,
             position->xid, position->heard_xid, position->seconds, position->era);
}

int position_parse(const char *text, size_t length, struct position *ret_position)
{
    int64_t numbers[NUMBERS] = {1, 1, 1, 0}; // of a later version: before all that there is
    if (versioned_parse(text, length, 'e', numbers, NUMBERS) < 0)
        return -ERROR_INVALID_ARGUMENTS;
    *ret_position = (struct position){numbers[0], numbers[1], numbers[2], numbers[3]};
    bool is_one = ret_position->heard_xid > 0 && ret_position->heard_xid <= ret_position->xid &&
                  ret_position->seconds > 0; // only the era may be 0
    return is_one ? 0 : -ERROR_INVALID_ARGUMENTS;
}
