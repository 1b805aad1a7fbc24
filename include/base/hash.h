// SPDX-License-Identifier: Apache-2.0
// uthash with the allocator of memory.h for its tables, which are small. By default, uthash ends
// the process when an allocation fails.
#pragma once

#include "base/memory.h"

#define uthash_malloc(size) memory_must_new(size)
#include <uthash.h>
