// SPDX-License-Identifier: Apache-2.0
// The events of channels in a backlog.
#pragma once

#include <stdbool.h>

struct behind;
struct resume;

// Asks for what comes next. False when there is nothing left.
bool resume_events_ask(struct resume *resume, struct behind *behind);
