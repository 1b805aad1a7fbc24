// SPDX-License-Identifier: Apache-2.0
// A thread of a server that runs long jobs one after another, so that they do not block the loop.
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

// `nice`: the thread's nice value, as in setpriority(2); higher values yield when CPUs are scarce.
NODISCARD int job_thread_new(struct loop *loop, int nice, struct job_thread **ret_thread);
// Queues the job. The thread owns it until done() is called.
void job_thread_add(struct job_thread *thread, struct thread_job *job);
// Calls done() with -ERROR_UNAVAILABLE for the remaining jobs. Only after loop_run() has returned.
void job_thread_free(struct job_thread *thread);
