// SPDX-License-Identifier: Apache-2.0
// What a JWT says about its user. Any thread.
#pragma once

#include "login/jwt.h"
#include "store/statement.h"

enum { JWT_EXTERNAL_ID_MAX = 255, JWT_EXTERNAL_ID_SIZE = JWT_EXTERNAL_ID_MAX + 1 };

// How the provider calls the user: the claim that `rules` names in user_claim, a text of 1 to
// JWT_EXTERNAL_ID_MAX bytes or an integer. -ERROR_INVALID_TOKEN: it has none. ret_id has
// JWT_EXTERNAL_ID_SIZE bytes.
NODISCARD int jwt_profile_external_id(const struct jwt *jwt, const json_t *rules, char *ret_id);

// Adds the parameters names, folded_names, claim_name and claim_email of login_complete(). The last
// name is made of `user_id` and is free. -ERROR_MEMORY.
NODISCARD int jwt_profile_add(const struct jwt *jwt, const json_t *rules, const char *user_id,
                              struct params *params);
