// SPDX-License-Identifier: Apache-2.0
// A push as Postgres has it, with the secrets of its app and its device sealed.
#pragma once

#include "base/secrets.h"
#include "notify/notify.h"

// Texts belong to the row that they were read from.
struct sealed_push {
    const char *workspace_id;
    const char *user_id;
    const char *app;
    const char *device_id;
    const char *platform;
    const char *fields;  // the app's public ones, a JSON object
    const char *secret;  // the app's key; NULL: it has none
    const char *address; // the device's
    int64_t registered_s;
};

// Opens it: a push without a message. The caller frees it, or sends it. -ERROR_SECRET_KEY_MISSING:
// the keys at hand do not open it. -ERROR_MEMORY. Any thread.
NODISCARD int sealed_push_open(const struct sealed_push *sealed, const struct secrets *secrets,
                               struct notify_push **ret_push);
