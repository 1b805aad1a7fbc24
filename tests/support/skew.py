# SPDX-License-Identifier: Apache-2.0
"""A clock that is wrong, for the processes of one server: a library to be loaded before all others."""
import os
import subprocess

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile int64_t *ahead_s;

__attribute__((constructor)) static void begin(void)
{
    int fd = open(getenv("CLOCK_SKEW_FILE"), O_RDONLY | O_CLOEXEC);
    ahead_s = mmap(NULL, sizeof *ahead_s, PROT_READ, MAP_SHARED, fd, 0);
}

int clock_gettime(clockid_t id, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int r = real(id, now);
    if (r == 0 && id == CLOCK_REALTIME)
        now->tv_sec += ahead_s ? *ahead_s : 0;
    return r;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec exact;
    int r = clock_gettime(CLOCK_REALTIME, &exact);
    (void)zone;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return r;
}

time_t time(time_t *ret_now)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret_now)
        *ret_now = now.tv_sec;
    return now.tv_sec;
}
"""


class Skew:
    """The wall clock of processes started with `environment`, which may run already."""

    def __init__(self, directory, seconds=0):
        directory.mkdir(mode=0o711, exist_ok=True)
        library, source = directory / "skew.so", directory / "skew.c"
        self._file = directory / "skew"
        self._file.write_bytes(bytes(8))
        self._file.chmod(0o644)
        source.write_text(SOURCE, encoding="ascii")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        # The sanitizers' own library need not be the first then.
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_SKEW_FILE": str(self._file), "ASAN_OPTIONS": "verify_asan_link_order=0"}
        self.step(seconds)

    def step(self, seconds):
        """Sets the clock so many seconds ahead of the right time, at once."""
        with open(self._file, "r+b", buffering=0) as file:
            os.write(file.fileno(), int(seconds).to_bytes(8, "little", signed=True))
