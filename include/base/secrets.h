// SPDX-License-Identifier: Apache-2.0
// Secrets at rest: sealed by AES-256-GCM under a key of the operator (TIDINGS_SECRET_KEY). A sealed
// text says which key it needs, and opens only at the place that it was sealed for. Any thread.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/digest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Where secrets are, before the key of their row: the app's id; "T1/name"; "U1/app/device".
#define APP_SECRET_PLACE "apps.signing_secret/"
#define PUSH_APP_SECRET_PLACE "push_apps.secret/"
#define DEVICE_ADDRESS_PLACE "devices.address/"

enum { SECRETS_KEY_LENGTH = 32, SECRETS_KEYS_MAX = 2, SECRETS_PREFIX_SIZE = 18 };

struct secrets {
    struct {
        uint8_t key[SECRETS_KEY_LENGTH];
        char prefix[SECRETS_PREFIX_SIZE]; // of what it seals: "sealed1.<8 hex digits>."
    } keys[SECRETS_KEYS_MAX];
    int count; // 0: nothing can be sealed or opened
};

// Reads "key" or "new,old", each 32 bytes in hex or base64; "" has none. -ERROR_INVALID_ARGUMENTS.
NODISCARD int secrets_read(const char *text, struct secrets *ret_secrets);

// Whether a text was made by secrets_seal(), under whatever key.
bool secrets_is_sealed(const char *text);

// Appends `data`, sealed with the first key, to `out`. `place` tells table, column and row, such as
// "apps.signing_secret/A123": who copies a sealed text elsewhere gains nothing. There must be a
// key. A lack of memory shows in `out` alone.
void secrets_seal(const struct secrets *secrets, const char *place, const void *data, size_t length,
                  struct buffer *out);

// Appends what was sealed. -ERROR_REFUSED: no key for it, another place, or it was altered.
// -ERROR_MEMORY.
NODISCARD int secrets_open(const struct secrets *secrets, const char *place, const char *text,
                           struct buffer *out);

// A digest under each key, by which equal secrets are found without opening any: in lower-case hex,
// that of the first key first. Returns how many.
int secrets_digests(const struct secrets *secrets, const void *data, size_t length,
                    char ret_hex[SECRETS_KEYS_MAX][DIGEST_HEX_SIZE]);
