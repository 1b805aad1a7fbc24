// SPDX-License-Identifier: Apache-2.0
// A post costs nothing but the channel's head (unread/effects.h). The rows of channel and member
// tell the count, and where posts after the cursor were deleted, unread/reader.c asks for them.
#include "unread/strategy.h"

#include <stdlib.h>
#include <string.h>

const struct strategy_ops strategy_sequence = {.name = "sequence"};

// Posts of others after `ord` that were deleted: from "ord:user ord:user …".
static int64_t deleted_after(const char *deleted, int64_t ord, const char *user_id)
{
    int64_t count = 0;

    while (*deleted != '\0') {
        char *colon;
        int64_t deleted_ord = strtoll(deleted, &colon, 10);
        size_t length = *colon == ':' ? strcspn(colon + 1, " ") : 0;
        bool own = length == strlen(user_id) && strncmp(colon + 1, user_id, length) == 0;
        count += deleted_ord > ord && !own;
        deleted = colon + (*colon == ':') + length;
        deleted += *deleted == ' ';
        if (length == 0)
            break;
    }
    return count;
}

int64_t sequence_count_take(const struct unread_view *view, int r, const struct cache_value *value)
{
    if (r < 0 || cache_value_count(value) != 3 || cache_value_is_null(cache_value_at(value, 0)) ||
        cache_value_int(cache_value_at(value, 0)) != view->head.seq ||
        view->member.ord < cache_value_int(cache_value_at(value, 1)))
        return STRATEGY_UNKNOWN;
    const char *deleted = cache_value_text(cache_value_at(value, 2));
    return unread_view_count(view, deleted_after(deleted, view->member.ord, view->user_id));
}
