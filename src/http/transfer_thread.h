// SPDX-License-Identifier: Apache-2.0
// A thread that moves files between sockets and disks, many at a time, so that neither slow peers
// nor slow disks are noticed on the loop.
#pragma once

#include "base/cleanup.h"
#include "base/id.h"
#include "base/list.h"
#include "base/loop.h"

#include <stdint.h>

enum { TRANSFERS_MAX = 64, TRANSFERS_OF_OWNER_MAX = 8 };

struct transfer_thread;

// Embedded in what is transferred. The thread owns it, and its descriptor, until done() is called.
struct file_transfer {
    struct list link;
    int fd;
    short events; // what step() waits for: POLLIN or POLLOUT
    char owner[ID_SIZE];
    int64_t moved_ms; // when bytes moved last
    int64_t ends_ms;
    int r;
    // Moves some bytes without waiting. Returns 1 at the end, 0 if there is more, or an error.
    int (*step)(struct file_transfer *transfer);
    int (*end)(struct file_transfer *transfer, int r);   // on the thread, last; returns the outcome
    void (*done)(struct file_transfer *transfer, int r); // on the loop, once
};

// A transfer fails with -ERROR_UNAVAILABLE when no bytes have moved for `idle_ms`.
NODISCARD int transfer_thread_new(struct loop *loop, int64_t idle_ms,
                                  struct transfer_thread **ret_thread);
// Takes over transfer->fd. -ERROR_BUSY: too many transfers, in total or of the owner.
NODISCARD int transfer_thread_add(struct transfer_thread *thread, struct file_transfer *transfer);
// Ends the remaining transfers with -ERROR_UNAVAILABLE. Only after loop_run() has returned.
void transfer_thread_free(struct transfer_thread *thread);
