// SPDX-License-Identifier: Apache-2.0
// Signed tokens (JWS in compact form, RFC 7515). Any thread.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <openssl/evp.h>

enum signature_kind { SIGNATURE_ES256, SIGNATURE_RS256 };

// Appends a token: header and claims, both JSON, signed with the private key in `pem`.
// -ERROR_INVALID_KEY: not a key, or of the wrong type. -ERROR_MEMORY.
NODISCARD int signature_token_make(enum signature_kind kind, const char *pem,
                                   const struct buffer *header, const struct buffer *claims,
                                   struct buffer *out);
