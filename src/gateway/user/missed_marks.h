// SPDX-License-Identifier: Apache-2.0
// Fetches marks, and threads, that may have been missed.
//
// Events without a seq count as heard once they are older than HEARD_LAG_S and nothing was late.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct gateway;

// SQL, for a row of unread_rows: whether anything was marked since the join.
#define MEMBER_IS_MARKED(m)                                                                        \
    "(" m ".seq <> " m ".member_seq OR " m ".epoch > 0 OR " m ".single_version > 0)"

enum { HEARD_LAG_S = 5 };

NODISCARD int missed_marks_new(struct gateway *gateway);
void missed_marks_free(struct gateway *gateway); // does nothing if there are none
int64_t
missed_marks_noted_xid(const struct gateway *gateway); // marks below it were heard; 0: not known
void missed_marks_note(struct gateway *gateway);       // all topics are subscribed
void missed_marks_note_first(struct gateway *gateway); // before a connection's channels are read
// Topics were not subscribed for a while, or are not: reads what was missed.
void missed_marks_sweep(struct gateway *gateway);
void missed_marks_sweep_resumed(struct gateway *gateway); // those of users who were away
void missed_marks_lower(struct gateway *gateway,
                        int64_t xid); // Postgres may give ids above it again
