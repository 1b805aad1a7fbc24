// SPDX-License-Identifier: Apache-2.0
// JWKs (RFC 7517): one public key as JSON. Any thread.
#pragma once

#include "base/json.h"
#include "login/key_set.h"

// Reads a public key that may verify signatures. `ret_id` gets its `kid` or "", and has KEY_ID_MAX
// + 1 bytes; ret_algorithms what its `alg` leaves of all. Sizes and curves are the caller's to
// check. -ERROR_INVALID_KEY, with static text in ret_why; -ERROR_MEMORY. The key is owned by the
// caller.
NODISCARD int jwk_read(const json_t *jwk, EVP_PKEY **ret_key, char *ret_id,
                       unsigned *ret_algorithms, const char **ret_why);
