// SPDX-License-Identifier: Apache-2.0
// What housekeeping last saw of Postgres that makes channels hot
// (docs/decisions/2026-11-23-hot-channels.md). Housekeeping writes it; writers read it. Any thread.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct heat {
    _Atomic int64_t snapshot_s; // age of the oldest snapshot
    _Atomic int64_t channels;   // hot ones
};
