// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/statement.h"

// Whether every value has been stored.
bool params_are_whole(const struct params *params);

// Makes a deep copy. The caller frees it with params_done().
void params_copy(struct params *ret_params, const struct params *params);

// A hash of the parameter types.
uint32_t params_types_hash(const struct params *params);
