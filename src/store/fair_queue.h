// SPDX-License-Identifier: Apache-2.0
// What waits for a group commit, fair by user: whoever has something waiting has a turn after the
// other, so that one who sends much waits behind itself alone (round robin, as J. Nagle, "On packet
// switches with infinite storage", RFC 970). What one user sends keeps its order. On the loop's
// thread.
#pragma once

#include "store/group.h"

struct fair_queue;

NODISCARD int fair_queue_new(struct fair_queue **ret_queue);
void fair_queue_free(struct fair_queue *queue); // not what waits in it; NULL does nothing

// At the end of what its user has waiting. -ERROR_MEMORY.
NODISCARD int fair_queue_add(struct fair_queue *queue, struct group_item *item);

// The one whose turn it is, NULL: none; and takes that one out.
struct group_item *fair_queue_first(const struct fair_queue *queue);
void fair_queue_take(struct fair_queue *queue);

// One that was taken goes back to its place among its user's, by its number, and has the next turn.
void fair_queue_return(struct fair_queue *queue, struct group_item *item);
