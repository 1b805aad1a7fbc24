// SPDX-License-Identifier: Apache-2.0
// The sequence strategy: a post only moves the channel's head (unread/effects.h). The count follows
// from the rows of channel and member; if posts after the cursor were deleted, unread/reader.c
// reads them from Redis.
#include "unread/strategy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct strategy_ops strategy_sequence = {.name = "sequence"};

// The number of deleted posts by others after `ord`, from "ord:user ord:user …". STRATEGY_UNKNOWN:
// another format, of a later release.
static int64_t deleted_after(const char *deleted, int64_t ord, const char *user_id)
{
    int64_t count = 0;

    while (*deleted != '\0') {
        char user[EVENT_ID_SIZE];
        int64_t deleted_ord;
        int end = 0;
        if (sscanf(deleted, "%" SCNd64 ":%23[A-Z0-9]%n", &deleted_ord, user, &end) != 2 ||
            (deleted[end] != ' ' && deleted[end] != '\0'))
            return STRATEGY_UNKNOWN;
        count += deleted_ord > ord && strcmp(user, user_id) != 0;
        deleted += end;
        deleted += *deleted == ' ';
    }
    return count;
}

int64_t strategy_sequence_count(const struct unread_view *view, int r,
                                const struct cache_value *value)
{
    int64_t seq, floor;

    if (r < 0 || !cache_value_number(cache_value_at(value, 0), &seq) || seq != view->head.seq ||
        !cache_value_number(cache_value_at(value, 1), &floor) || view->member.ord < floor ||
        cache_value_is_null(cache_value_at(value, 2)))
        return STRATEGY_UNKNOWN;
    int64_t deleted =
        deleted_after(cache_value_text(cache_value_at(value, 2)), view->member.ord, view->user_id);
    return deleted == STRATEGY_UNKNOWN ? deleted : unread_view_count(view, deleted);
}
