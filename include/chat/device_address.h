// SPDX-License-Identifier: Apache-2.0
// Where a device is reached, by its platform: what a client registers, the form in which it is
// sealed, and what tells two devices apart. Any thread.
#pragma once

#include "base/buffer.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

enum push_platform { PUSH_APNS, PUSH_FCM, PUSH_WEBPUSH, PUSH_MATRIX, PUSH_PLATFORM_MAX };

// "apns", "fcm", "webpush", "matrix".
const char *push_platform_name(enum push_platform platform);
// PUSH_PLATFORM_MAX when there is no such platform.
enum push_platform push_platform_find(const char *name);

// The parts of an address, in the order of device_parts; the rest is NULL.
enum { DEVICE_PARTS_MAX = 3 };
struct device_address {
    enum push_platform platform;
    const char *parts[DEVICE_PARTS_MAX];
};

// The name of a part ("push_token"; "endpoint", "p256dh", "auth"; "url", "pushkey"); NULL: there
// are no more.
const char *device_part_name(enum push_platform platform, int part);

// Whether a part has the shape that its platform gives it; of a URL only that it is no other kind
// of text. NULL when it is right, else what it must be.
const char *device_part_complaint(enum push_platform platform, int part, const char *text);

// Appends the address as a JSON object of its parts.
void device_address_write(const struct device_address *address, struct buffer *out);

// Appends what is the device's alone, from the object: its token, its endpoint, or its pushkey at
// its url. -ERROR_INVALID_JSON: there is none. -ERROR_MEMORY.
NODISCARD int device_address_token(const char *json, size_t length, struct buffer *out);
