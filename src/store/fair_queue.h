// SPDX-License-Identifier: Apache-2.0
// The queue of a group commit, fair between users: users with waiting items take turns, so a user
// who sends a lot delays only themselves (round robin, as in J. Nagle, "On packet switches with
// infinite storage", RFC 970). Each user's items keep their order. On the loop's thread.
#pragma once

#include "store/group.h"

struct fair_queue;

NODISCARD int fair_queue_new(struct fair_queue **ret_queue);
void fair_queue_free(struct fair_queue *queue); // does not free the items; accepts NULL

// Appends an item to those of its user. -ERROR_MEMORY.
NODISCARD int fair_queue_add(struct fair_queue *queue, struct group_item *item);

// fair_queue_first(): the next item, NULL if there is none. fair_queue_take() removes it.
struct group_item *fair_queue_first(const struct fair_queue *queue);
void fair_queue_take(struct fair_queue *queue);

// Puts back an item that was taken: at its place among its user's items, by its number. That user
// is served next.
void fair_queue_return(struct fair_queue *queue, struct group_item *item);
