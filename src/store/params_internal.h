// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/statement.h"

// Whether all that was put into `params` is there.
bool params_are_whole(const struct params *params);

// A copy, to be freed like any other.
void params_copy(struct params *ret_params, const struct params *params);

// A number that differs, in all likelihood, between lists of different types.
uint32_t params_types_hash(const struct params *params);
