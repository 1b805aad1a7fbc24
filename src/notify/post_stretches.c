// SPDX-License-Identifier: Apache-2.0
// Selects the posts of a round that Postgres needs in order to find their recipients.
#include "post_stretches.h"

#include <stdlib.h>
#include <string.h>

// Posts first, grouped by channel, in order.
static int compare_events(const void *a, const void *b)
{
    const struct event *left = *(struct event *const *)a;
    const struct event *right = *(struct event *const *)b;
    int order = (left->kind != EVENT_POST) - (right->kind != EVENT_POST);
    if (order == 0)
        order = strcmp(left->channel_id, right->channel_id);
    return order != 0 ? order : (left->ts > right->ts) - (left->ts < right->ts);
}

// Moves those of `events`, posts of one channel, to *ret_kept that push_targets() needs: it looks
// at a stretch of the channel, from the first to the last post, and at whether all have the same
// author. Returns their number.
static size_t stretch_reduce(struct event *const *events, size_t count, struct event **ret_kept)
{
    size_t kept = 0;
    size_t other = 1;
    ret_kept[kept++] = events[0];
    while (other + 1 < count && strcmp(events[other]->user_id, events[0]->user_id) == 0)
        other++;
    if (other + 1 < count)
        ret_kept[kept++] = events[other];
    if (count > 1)
        ret_kept[kept++] = events[count - 1];
    return kept;
}

size_t post_stretches_reduce(struct event **events, size_t count)
{
    size_t kept = 0;
    size_t end;
    qsort(events, count, sizeof *events, compare_events);
    for (size_t first = 0; first < count; first = end) {
        end = first + 1;
        while (events[first]->kind == EVENT_POST && end < count &&
               events[end]->kind == EVENT_POST &&
               strcmp(events[end]->channel_id, events[first]->channel_id) == 0)
            end++;
        kept += stretch_reduce(events + first, end - first, events + kept);
    }
    return kept;
}
