// SPDX-License-Identifier: Apache-2.0
// `tidings serve`: the loops, the relay, the workers and housekeeping, put together, run, and
// stopped in order.
#pragma once

#include "app/settings.h"

// Serves until SIGTERM or SIGINT; returns the process's exit code.
int instance_run(const struct settings *settings);
