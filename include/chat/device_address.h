// SPDX-License-Identifier: Apache-2.0
// A device's push address, by platform: its parts, their validation, the JSON that is encrypted and
// stored, and the token that identifies the device. Any thread.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

enum push_platform { PUSH_APNS, PUSH_FCM, PUSH_WEBPUSH, PUSH_MATRIX, PUSH_PLATFORM_MAX };

// "apns", "fcm", "webpush", "matrix".
const char *push_platform_name(enum push_platform platform);
// PUSH_PLATFORM_MAX: unknown name.
enum push_platform push_platform_find(const char *name);

// The parts of an address, in the order of device_part_name(); unused ones are NULL.
enum { DEVICE_PARTS_MAX = 3 };
struct device_address {
    enum push_platform platform;
    const char *parts[DEVICE_PARTS_MAX];
};

// The name of a part ("push_token"; "endpoint", "p256dh", "auth"; "url", "pushkey"). NULL: no more
// parts.
const char *device_part_name(enum push_platform platform, int part);

// Validates one part. Returns NULL if it is valid, otherwise the requirement it violates. Of a URL
// only the prefix "http" is checked.
const char *device_part_error(enum push_platform platform, int part, const char *text);

// Appends the address as a JSON object with one member per part.
void device_address_write(const struct device_address *address, struct buffer *out);

// Appends the text that identifies the device, from that JSON object: its token, its endpoint, or
// its pushkey and url. -ERROR_INVALID_JSON: there is none. -ERROR_MEMORY.
NODISCARD int device_address_token(const char *json, size_t length, struct buffer *out);
