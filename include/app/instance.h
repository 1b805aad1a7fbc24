// SPDX-License-Identifier: Apache-2.0
// `tidings serve`: creates the loops, the relay, the workers and housekeeping, runs them, and stops
// them in order.
#pragma once

#include "app/settings.h"

// Serves until SIGTERM or SIGINT. Returns the process's exit code.
int instance_run(const struct settings *settings);
