// SPDX-License-Identifier: Apache-2.0
// The keys of push providers, as an admin gives them. Each function answers -ERROR_INVALID_KEY when
// a key is none, -ERROR_MEMORY.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"

enum { PUSH_KEY_MAX = 16384 };

// The key of APNs: a private EC key on P-256, in PEM.
NODISCARD int push_key_check_apns(const char *pem);

// A service account of Google, in JSON, with an RSA key of at least 2,048 bits. The caller owns
// `ret_account`. `ret_complaint` is static: the member that is wrong.
NODISCARD int push_key_read_account(const char *text, json_t **ret_account,
                                    const char **ret_complaint);

// A new key pair for Web Push: the private key in PEM, and the public one as browsers take it (a
// point of 65 bytes in base64url).
NODISCARD int push_key_make_webpush(struct buffer *pem, struct buffer *public_key);
