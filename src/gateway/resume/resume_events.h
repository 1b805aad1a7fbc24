// SPDX-License-Identifier: Apache-2.0
// The channel events of a backlog.
#pragma once

#include <stdbool.h>

struct behind;
struct resume;

// Requests the channel's next events. False: there are none left.
bool resume_events_ask(struct resume *resume, struct behind *behind);
