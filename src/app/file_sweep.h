// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/settings.h"
#include "base/cleanup.h"

struct session;
struct storage;

// Ends uploads that nobody finished, and removes the bytes of files that are gone, a page of each.
// 1: there may be more. Blocks.
NODISCARD int file_sweep(const struct settings *settings, struct session *session,
                         const struct storage *storage);
