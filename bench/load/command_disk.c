// SPDX-License-Identifier: Apache-2.0
// How long the disk takes to keep a page: no commit on it is quicker. At a slow and steady rate, as
// the rows of delivery commit, not one right after the other.
#include "commands.h"
#include "samples.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PAGE_BYTES = 8192, FILE_PAGES = 2048 };

// A file as a segment of Postgres' log is: of its full size before anything is kept in it.
static int file_make(const char *path)
{
    static const char page[PAGE_BYTES];
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        tool_die("cannot make %s", path);
    unlink(path);
    for (int i = 0; i < FILE_PAGES; i++)
        if (write(fd, page, sizeof(page)) != (ssize_t)sizeof(page))
            tool_die("cannot write %s", path);
    if (fsync(fd) != 0)
        tool_die("cannot keep %s", path);
    return fd;
}

static uint64_t page_write(int fd, unsigned n)
{
    char page[PAGE_BYTES] = {(char)n};
    uint64_t begun_ns = tool_now_ns();

    if (pwrite(fd, page, sizeof(page), (off_t)(n % FILE_PAGES) * PAGE_BYTES) !=
            (ssize_t)sizeof(page) ||
        fdatasync(fd) != 0)
        tool_die("cannot keep a page");
    return tool_now_ns() - begun_ns;
}

static void wait_until(uint64_t due_ns)
{
    struct timespec due = {.tv_sec = (time_t)(due_ns / TOOL_NS_PER_S),
                           .tv_nsec = (long)(due_ns % TOOL_NS_PER_S)};

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

void command_disk(const struct tool_args *args)
{
    const char *path = tool_args_text(args, "file", NULL);
    unsigned seconds = tool_args_number(args, "seconds", 3, 1, 60);
    unsigned rate = tool_args_number(args, "rate", 100, 1, 10000);
    struct samples samples = {0};
    uint64_t begun_ns;
    int fd;

    if (!path)
        tool_die("--file: where to write");
    fd = file_make(path);
    begun_ns = tool_now_ns();
    for (unsigned n = 0; n < seconds * rate; n++) {
        wait_until(begun_ns + n * TOOL_NS_PER_S / rate);
        samples_add(&samples, page_write(fd, n));
    }
    fputs("{", stdout);
    samples_print(&samples, "");
    puts("}");
    samples_done(&samples);
    close(fd);
}
