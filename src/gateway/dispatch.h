// SPDX-License-Identifier: Apache-2.0
// Dispatches messages of the subscribed topics.
#pragma once

#include <stddef.h>

void dispatch_on_message(void *gateway, const char *topic, const char *data, size_t length);
