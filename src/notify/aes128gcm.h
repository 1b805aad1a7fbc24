// SPDX-License-Identifier: Apache-2.0
// Encrypts Web Push messages for a browser's subscription (RFC 8291, based on RFC 8188). Any
// thread.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <openssl/evp.h>

// A body has at most 4,096 bytes, including a header of 86 bytes, a tag of 16, and the delimiter.
enum {
    AES128GCM_POINT = 65,
    AES128GCM_AUTH = 16,
    AES128GCM_SALT = 16,
    AES128GCM_TEXT_MAX = 4096 - 103
};

// From the subscription: its public key, an uncompressed point on P-256, and its secret.
struct aes128gcm_receiver {
    uint8_t point[AES128GCM_POINT];
    uint8_t auth[AES128GCM_AUTH];
};

// Reads both from base64. -ERROR_INVALID_ARGUMENTS.
NODISCARD int aes128gcm_receiver_read(const char *p256dh, const char *auth,
                                      struct aes128gcm_receiver *ret_receiver);

// Appends `text`, encrypted with a fresh key pair and salt. -ERROR_INVALID_ARGUMENTS: the point is
// not on the curve. -ERROR_TOO_LONG. -ERROR_MEMORY.
NODISCARD int aes128gcm_encrypt(const struct aes128gcm_receiver *receiver, const void *text,
                                size_t length, struct buffer *out);

// Likewise with a given key pair and salt, for tests.
NODISCARD int aes128gcm_encrypt_with(const struct aes128gcm_receiver *receiver, EVP_PKEY *own,
                                     const uint8_t *salt, const void *text, size_t length,
                                     struct buffer *out);
