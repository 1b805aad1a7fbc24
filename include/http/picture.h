// SPDX-License-Identifier: Apache-2.0
// The picture of who has none: a pattern that is always the same for the same id, as a PNG.
#pragma once

#include "base/buffer.h"

enum { PICTURE_PIXELS_MAX = 512 };

// Appends the PNG of `pixels` x `pixels`; check buffer_failed().
void picture_append(const char *id, int pixels, struct buffer *out);

// The page "/avatars/SIZE/ID.png": 200, or 404 for any other size than Slack's, or no id.
int picture_page(void *arg, const char *path, struct buffer *body, const char **ret_type);
