// SPDX-License-Identifier: Apache-2.0
// Secrets at rest, sealed with AES-256-GCM under the operator's key (TIDINGS_SECRET_KEY). A sealed
// text names its key, and opens only at the place for which it was sealed. Any thread.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/digest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Places of secrets, to be followed by the row's key: the app's id; "T1/name"; "U1/app/device"; the
// provider's id.
#define APP_SECRET_PLACE "apps.signing_secret/"
#define PUSH_APP_SECRET_PLACE "push_apps.secret/"
#define DEVICE_ADDRESS_PLACE "devices.address/"
#define AUTH_PROVIDER_KEYS_PLACE "auth_providers.keys/"

enum { SECRETS_KEY_LENGTH = 32, SECRETS_KEYS_MAX = 2, SECRETS_PREFIX_SIZE = 18 };

struct secrets {
    struct {
        uint8_t key[SECRETS_KEY_LENGTH];
        char prefix[SECRETS_PREFIX_SIZE]; // of its sealed texts: "sealed1.<8 hex digits>."
    } keys[SECRETS_KEYS_MAX];
    int count; // 0: sealing and opening are impossible
};

// Parses "key" or "new,old", each key 32 bytes in hex or base64; "" means no key.
// -ERROR_INVALID_ARGUMENTS.
NODISCARD int secrets_read(const char *text, struct secrets *ret_secrets);

// Whether secrets_seal() produced the text, with any key.
bool secrets_is_sealed(const char *text);

// Appends `data` to `out`, sealed with the first key. `place` names table, column and row, such as
// "apps.signing_secret/A123", so that a sealed text copied elsewhere does not open. At least one
// key is required. Out of memory: only `out` fails.
void secrets_seal(const struct secrets *secrets, const char *place, const void *data, size_t length,
                  struct buffer *out);

// Appends the plain text. -ERROR_REFUSED: unknown key, wrong place, or altered text. -ERROR_MEMORY.
NODISCARD int secrets_open(const struct secrets *secrets, const char *place, const char *text,
                           struct buffer *out);

// Computes a keyed digest per key, in lower-case hex and in the order of the keys. Equal secrets
// have equal digests, so they can be found without being opened. Returns the number of digests.
int secrets_digests(const struct secrets *secrets, const void *data, size_t length,
                    char ret_hex[SECRETS_KEYS_MAX][DIGEST_HEX_SIZE]);
