// SPDX-License-Identifier: Apache-2.0
// Validates and creates keys of push providers. All functions return -ERROR_INVALID_KEY for an
// invalid key, or -ERROR_MEMORY.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"

enum { PUSH_KEY_MAX = 16384 };

// An APNs key: a private EC key on P-256, in PEM.
NODISCARD int push_key_check_apns(const char *pem);

// A Google service account, in JSON, with an RSA key of at least 2,048 bits. `ret_account` is owned
// by the caller. `ret_invalid` is static: the invalid member.
NODISCARD int push_key_read_account(const char *text, json_t **ret_account,
                                    const char **ret_invalid);

// Creates a key pair for Web Push: the private key in PEM, and the public key in the form for
// browsers (a point of 65 bytes in base64url).
NODISCARD int push_key_make_webpush(struct buffer *pem, struct buffer *public_key);
