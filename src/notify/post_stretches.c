// SPDX-License-Identifier: Apache-2.0
// Which posts of a round Postgres has to be told of, to find whom they concern.
#include "post_stretches.h"

#include <stdlib.h>
#include <string.h>

// Posts first, those of a channel together, in their order.
static int compare_events(const void *a, const void *b)
{
    const struct event *left = *(struct event *const *)a;
    const struct event *right = *(struct event *const *)b;
    int order = (left->kind != EVENT_POST) - (right->kind != EVENT_POST);
    if (order == 0)
        order = strcmp(left->channel_id, right->channel_id);
    return order != 0 ? order : (left->ts > right->ts) - (left->ts < right->ts);
}

// Moves `events`, posts of one channel, to *ret_kept as far as push_targets() needs them: it looks
// at a stretch of the channel, from the first to the last, and whether all are of one author. How
// many.
static size_t stretch_keep(struct event *const *events, size_t count, struct event **ret_kept)
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

size_t post_stretches_keep(struct event **events, size_t count)
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
        kept += stretch_keep(events + first, end - first, events + kept);
    }
    return kept;
}
