// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/buffer.h"

// The requests' part of metrics_print().
void metrics_print_requests(struct buffer *out);
