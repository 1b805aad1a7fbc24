// SPDX-License-Identifier: Apache-2.0
// A thread for long jobs, so that they do not block the loop.
#include "job_thread.h"

#include "base/check.h"
#include "base/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { POST_RETRY_US = 1000 };

struct job_thread {
    uint32_t tag;
    struct loop *loop;
    int nice;
    pthread_t thread;
    pthread_mutex_t lock; // guards all that follows
    pthread_cond_t filled;
    struct list waiting;
    struct list done;
    bool stopped;
};

static void jobs_end(struct list *jobs, int r)
{
    LIST_FOREACH(link, jobs)
    {
        struct thread_job *job = LIST_ITEM(link, struct thread_job, link);
        list_remove(link);
        job->done(job, r);
    }
}

static void done_call(void *arg)
{
    struct job_thread *worker = CAST(job_thread, arg);
    struct list done;
    list_init(&done);
    pthread_mutex_lock(&worker->lock);
    list_append_all(&done, &worker->done);
    pthread_mutex_unlock(&worker->lock);
    jobs_end(&done, 0);
}

// Call under the lock, which is released meanwhile. Retries while the loop's inbox is full: the
// job's owner waits for the result.
static void done_post(struct job_thread *worker)
{
    int r;

    do {
        pthread_mutex_unlock(&worker->lock);
        r = loop_post(worker->loop, done_call, worker);
        if (r < 0)
            (void)usleep(POST_RETRY_US);
        pthread_mutex_lock(&worker->lock);
    } while (r < 0 && !worker->stopped);
}

static void job_run(struct job_thread *worker, struct thread_job *job)
{
    list_remove(&job->link);
    pthread_mutex_unlock(&worker->lock);
    job->run(job);
    pthread_mutex_lock(&worker->lock);
    list_append(&worker->done, &job->link);
    done_post(worker);
}

static void *job_thread_run(void *arg)
{
    struct job_thread *worker = CAST(job_thread, arg);
    (void)!setpriority(PRIO_PROCESS, 0, worker->nice); // affects only this thread
    pthread_mutex_lock(&worker->lock);
    while (!worker->stopped) {
        if (list_is_empty(&worker->waiting))
            pthread_cond_wait(&worker->filled, &worker->lock);
        else
            job_run(worker, LIST_ITEM(worker->waiting.next, struct thread_job, link));
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

int job_thread_new(struct loop *loop, int nice, struct job_thread **ret_worker)
{
    struct job_thread *worker = TAGGED_NEW(job_thread);
    if (!worker)
        return -ERROR_MEMORY;
    worker->loop = loop;
    worker->nice = nice;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->filled, NULL);
    list_init(&worker->waiting);
    list_init(&worker->done);
    if (pthread_create(&worker->thread, NULL, job_thread_run, worker) != 0) {
        TAGGED_FREE(worker);
        return -ERROR_MEMORY;
    }
    *ret_worker = worker;
    return 0;
}

void job_thread_add(struct job_thread *worker, struct thread_job *job)
{
    ASSERT(job->run && job->done);
    pthread_mutex_lock(&worker->lock);
    list_append(&worker->waiting, &job->link);
    pthread_cond_signal(&worker->filled);
    pthread_mutex_unlock(&worker->lock);
}

void job_thread_free(struct job_thread *worker)
{
    if (!worker)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->stopped = true;
    pthread_cond_signal(&worker->filled);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    jobs_end(&worker->done, -ERROR_UNAVAILABLE);
    jobs_end(&worker->waiting, -ERROR_UNAVAILABLE);
    pthread_cond_destroy(&worker->filled);
    pthread_mutex_destroy(&worker->lock);
    TAGGED_FREE(worker);
}
