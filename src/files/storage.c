// SPDX-License-Identifier: Apache-2.0
// Objects in a directory. Each is written beside its place, synced, and renamed into it.
#include "files/storage.h"

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define URL_PREFIX "file://"
#define PART_SUFFIX ".part"
enum { STORAGE_PATH_SIZE = 1024, STORAGE_SUBPATH_SIZE = 64, OBJECT_MIN = 3 };

struct storage {
    char path[STORAGE_PATH_SIZE];
};

struct storage_writer {
    int fd;
    char directory[STORAGE_PATH_SIZE + STORAGE_SUBPATH_SIZE];
    char path[STORAGE_PATH_SIZE + STORAGE_SUBPATH_SIZE];
    char part[STORAGE_PATH_SIZE + STORAGE_SUBPATH_SIZE + sizeof PART_SUFFIX];
};

static int storage_fail(const char *what)
{
    log_write(LOG_ERROR, "files", "cannot %s: %s", what, strerrordesc_np(errno));
    return -ERROR_UNAVAILABLE;
}

int storage_new(const char *url, struct storage **ret_storage)
{
    const char *path = url + sizeof URL_PREFIX - 1;
    if (strncmp(url, "s3://", 5) == 0) {
        log_write(LOG_ERROR, "files", "TIDINGS_FILES_URL: s3:// is not supported; use file:///");
        return -ERROR_INVALID_ARGUMENTS;
    }
    if (strncmp(url, URL_PREFIX "/", sizeof URL_PREFIX) != 0 || strlen(path) >= STORAGE_PATH_SIZE) {
        log_write(LOG_ERROR, "files", "TIDINGS_FILES_URL must be file:///directory");
        return -ERROR_INVALID_ARGUMENTS;
    }
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return storage_fail("create the directory of TIDINGS_FILES_URL");
    struct storage *storage = calloc(1, sizeof *storage);
    if (!storage)
        return -ERROR_MEMORY;
    snprintf(storage->path, sizeof storage->path, "%s", path);
    *ret_storage = storage;
    return 0;
}

void storage_free(struct storage *storage)
{
    free(storage);
}

// The places of an object: in one of a thousand directories, by the end of its name.
static void paths_print(const struct storage *storage, const char *object,
                        struct storage_writer *ret_writer)
{
    ASSERT(strlen(object) >= OBJECT_MIN && !strchr(object, '/'));
    snprintf(ret_writer->directory, sizeof ret_writer->directory, "%s/%s", storage->path,
             object + strlen(object) - 2);
    snprintf(ret_writer->path, sizeof ret_writer->path, "%.*s/%.32s",
             (int)sizeof ret_writer->directory - 40, ret_writer->directory, object);
    snprintf(ret_writer->part, sizeof ret_writer->part, "%s" PART_SUFFIX, ret_writer->path);
}

static int directory_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -1 : fsync(fd);
    if (fd >= 0)
        close(fd);
    return r;
}

int storage_write_begin(const struct storage *storage, const char *object,
                        struct storage_writer **ret_writer)
{
    struct storage_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return -ERROR_MEMORY;
    paths_print(storage, object, writer);
    if (mkdir(writer->directory, 0700) == 0)
        (void)directory_sync(storage->path);
    writer->fd = open(writer->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (writer->fd < 0) {
        free(writer);
        return storage_fail("create a file");
    }
    *ret_writer = writer;
    return 0;
}

int storage_write(struct storage_writer *writer, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t count = write(writer->fd, data, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return storage_fail("write a file");
        data += count;
        size -= (size_t)count;
    }
    return 0;
}

int storage_write_end(struct storage_writer *writer)
{
    if (fsync(writer->fd) < 0 || rename(writer->part, writer->path) < 0 ||
        directory_sync(writer->directory) < 0) {
        int r = storage_fail("store a file");
        storage_write_drop(writer);
        return r;
    }
    close(writer->fd);
    free(writer);
    return 0;
}

void storage_write_drop(struct storage_writer *writer)
{
    if (!writer)
        return;
    close(writer->fd);
    (void)unlink(writer->part);
    free(writer);
}

int storage_open(const struct storage *storage, const char *object)
{
    struct storage_writer paths;
    paths_print(storage, object, &paths);
    int fd = open(paths.path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? storage_fail("open a file") : fd;
}

int storage_remove(const struct storage *storage, const char *object)
{
    struct storage_writer paths;
    paths_print(storage, object, &paths);
    if ((unlink(paths.part) < 0 && errno != ENOENT) || (unlink(paths.path) < 0 && errno != ENOENT))
        return storage_fail("remove a file");
    return 0;
}
