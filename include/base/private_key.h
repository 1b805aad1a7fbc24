// SPDX-License-Identifier: Apache-2.0
// Reads private keys in PEM. Any thread.
#pragma once

#include "base/cleanup.h"

#include <openssl/evp.h>

// Owned by the caller; NULL: not a private key, or an encrypted one, since nobody can enter the
// passphrase.
EVP_PKEY *private_key_parse(const char *pem);

static inline void private_key_done(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}
#define CLEANUP_PRIVATE_KEY CLEANUP(private_key_done)
