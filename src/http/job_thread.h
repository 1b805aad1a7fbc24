// SPDX-License-Identifier: Apache-2.0
// A thread of a server that does what takes long, one job after the other, so that the loop never
// stops for it.
#pragma once

#include "base/cleanup.h"
#include "base/list.h"
#include "base/loop.h"

struct job_thread;

struct thread_job {
    struct list link;
    void (*run)(struct thread_job *job);         // on the thread
    void (*done)(struct thread_job *job, int r); // on the loop, once; see job_thread_free()
};

// `nice`: how far the thread stands back where cores are short, as in setpriority(2).
NODISCARD int job_thread_new(struct loop *loop, int nice, struct job_thread **ret_thread);
// Takes over the job until its done().
void job_thread_add(struct job_thread *thread, struct thread_job *job);
// Calls done() with -ERROR_UNAVAILABLE for what is left. Only after loop_run() has returned.
void job_thread_free(struct job_thread *thread);
