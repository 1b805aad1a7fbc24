// SPDX-License-Identifier: Apache-2.0
// A post costs nothing but the channel's head (unread/effects.h). The rows of channel and member
// tell the count, and where posts after the cursor were deleted, unread/reader.c asks for them.
#include "unread/strategy.h"

const struct strategy_ops strategy_sequence = {.name = "sequence"};
