// SPDX-License-Identifier: Apache-2.0
// Ends the process on a failed assertion.
#include "base/check.h"

#include "base/log.h"

void check_fail(const char *file, int line, const char *what)
{
    log_write(LOG_ERROR, "base", "assertion failed: %s, %s:%d", what, file, line);
    log_flush();
    abort();
}
