// SPDX-License-Identifier: Apache-2.0
// A push as stored in Postgres, with the secrets of its app and device encrypted.
#pragma once

#include "base/secrets.h"
#include "notify/notify.h"

// Strings are owned by the row they were read from.
struct sealed_push {
    const char *workspace_id;
    const char *user_id;
    const char *app;
    const char *device_id;
    const char *platform;
    const char *fields;  // the app's public fields, a JSON object
    const char *secret;  // the app's key; NULL: none
    const char *address; // the device's address
    int64_t registered_s;
};

// Decrypts it into a push without a message, which the caller frees or sends.
// -ERROR_SECRET_KEY_MISSING: none of the keys decrypts it. -ERROR_MEMORY. Otherwise its fields
// cannot be read. Any thread.
NODISCARD int sealed_push_open(const struct sealed_push *sealed, const struct secrets *secrets,
                               struct notify_push **ret_push);
