// SPDX-License-Identifier: Apache-2.0
// uthash, whose tables are small allocations of the kind that memory.h describes: by itself uthash
// ends the process when one fails.
#pragma once

#include "base/memory.h"

#define uthash_malloc(size) memory_must_new(size)
#include <uthash.h>
