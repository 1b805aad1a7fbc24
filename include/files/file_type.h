// SPDX-License-Identifier: Apache-2.0
// What a file is, by its first bytes; only if these say nothing, by its name.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { FILE_TYPE_BYTES = 16 }; // enough to tell

struct file_type {
    const char *name; // Slack's filetype: "png"
    const char *mime;
};

// Never NULL.
const struct file_type *file_type_of(const unsigned char *bytes, size_t size, const char *name);
// Whether a browser may show files of this type. Their bytes have said so.
bool file_type_is_shown(const char *mime);
