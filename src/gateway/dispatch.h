// SPDX-License-Identifier: Apache-2.0
// Messages of the topics that are followed.
#pragma once

#include <stddef.h>

void dispatch_on_message(void *gateway, const char *topic, const char *data, size_t length);
