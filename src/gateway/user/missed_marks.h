// SPDX-License-Identifier: Apache-2.0
// Catch-up for updates without a seq (read marks, notification settings, thread follows): after an
// outage of the topics, re-reads what changed for this gateway's users and sends it again.
//
// An update counts as received once it is older than RECEIVED_LAG_S and nothing was late.
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct gateway;

// SQL, for a row of unread_rows: whether anything was marked since the join.
#define MEMBER_IS_MARKED(m)                                                                        \
    "(" m ".seq <> " m ".member_seq OR " m ".epoch > 0 OR " m ".single_version > 0)"

enum { RECEIVED_LAG_S = 5 };

NODISCARD int missed_marks_new(struct gateway *gateway);
void missed_marks_free(struct gateway *gateway); // may be called without missed_marks_new()
// All marks below this transaction were received; 0: unknown.
int64_t missed_marks_noted_xid(const struct gateway *gateway);
void missed_marks_note(struct gateway *gateway);       // all topics are subscribed
void missed_marks_note_first(struct gateway *gateway); // before a connection's channels are read
// Topics were or are not subscribed: reads what was missed.
void missed_marks_sweep(struct gateway *gateway);
void missed_marks_sweep_resumed(struct gateway *gateway); // the same for users who were away
// Postgres may assign ids above `xid` again (a new era).
void missed_marks_lower(struct gateway *gateway, int64_t xid);
