// SPDX-License-Identifier: Apache-2.0
// Where the bytes of files are: objects in a directory. An object is there as a whole or not at
// all, and never changes. All functions but storage_new() and storage_free() block: call them on
// threads without a loop, on any of them.
#pragma once

#include "base/cleanup.h"

#include <stddef.h>

struct storage;
struct storage_writer;

// `url`: "file:///directory", which is created. -ERROR_INVALID_ARGUMENTS: it is no such URL;
// -ERROR_UNAVAILABLE: the directory cannot be created. Both are logged.
NODISCARD int storage_new(const char *url, struct storage **ret_storage);
void storage_free(struct storage *storage); // takes NULL

// Begins an object; its name is an id. -ERROR_UNAVAILABLE, as all that follow: the reason is
// logged.
NODISCARD int storage_write_begin(const struct storage *storage, const char *object,
                                  struct storage_writer **ret_writer);
NODISCARD int storage_write(struct storage_writer *writer, const char *data, size_t size);
// Makes the object durable, and frees the writer.
NODISCARD int storage_write_end(struct storage_writer *writer);
// Removes what has been written, and frees the writer. Takes NULL.
void storage_write_drop(struct storage_writer *writer);

// Returns a descriptor for reading, owned by the caller; negative: the object is not there.
NODISCARD int storage_open(const struct storage *storage, const char *object);
// Removes an object, or what a process that died has left of one. 0 also if there is none.
NODISCARD int storage_remove(const struct storage *storage, const char *object);
