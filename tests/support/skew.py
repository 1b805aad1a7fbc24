# SPDX-License-Identifier: Apache-2.0
"""A clock that is wrong, for one process: a library to be loaded before all others."""
import subprocess

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *now)
{
    int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int r = real(id, now);
    if (r == 0 && id == CLOCK_REALTIME)
        now->tv_sec += atol(getenv("CLOCK_SKEW_S"));
    return r;
}
"""


def skewed(directory, seconds):
    """The environment of a process whose wall clock is this many seconds ahead."""
    library = directory / "skew.so"
    if not library.exists():
        source = directory / "skew.c"
        source.write_text(SOURCE, encoding="ascii")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    # The sanitizers' own library need not be the first then.
    return {"LD_PRELOAD": str(library), "CLOCK_SKEW_S": str(seconds), "ASAN_OPTIONS": "verify_asan_link_order=0"}
