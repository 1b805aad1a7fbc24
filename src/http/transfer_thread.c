// SPDX-License-Identifier: Apache-2.0
// The thread of transfers: polls their sockets, and lets each that is ready move some bytes.
#include "transfer_thread.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

// TRANSFER_MAX_MS bounds a peer that sends a byte now and then.
enum { TICK_MS = 200, TRANSFER_MAX_MS = 3600 * 1000, POST_RETRY_US = 1000 };

struct transfer_thread {
    uint32_t tag;
    struct loop *loop;
    int64_t idle_ms;
    int wake_fd;
    pthread_t thread;
    struct list active;   // the thread's
    pthread_mutex_t lock; // guards all that follows
    struct list coming;
    struct list done;
    char owners[TRANSFERS_MAX][ID_SIZE]; // of all transfers that are not done
    int count;
    bool stopped;
};

static void owner_forget(struct transfer_thread *thread, const char *owner)
{
    for (int i = 0; i < thread->count; i++) {
        if (strcmp(thread->owners[i], owner) != 0)
            continue;
        memcpy(thread->owners[i], thread->owners[--thread->count], ID_SIZE);
        break;
    }
    metric_add(METRIC_TRANSFERS, -1);
}

static void done_call(void *arg)
{
    struct transfer_thread *thread = CAST(transfer_thread, arg);
    struct list done;
    list_init(&done);
    pthread_mutex_lock(&thread->lock);
    list_append_all(&done, &thread->done);
    pthread_mutex_unlock(&thread->lock);
    LIST_FOREACH(link, &done)
    {
        struct file_transfer *transfer = LIST_ITEM(link, struct file_transfer, link);
        list_remove(link);
        transfer->done(transfer, transfer->r);
    }
}

static void transfer_finish(struct transfer_thread *thread, struct file_transfer *transfer, int r)
{
    close(transfer->fd);
    transfer->r = transfer->end(transfer, r < 0 ? r : 0);
    list_remove(&transfer->link);
    pthread_mutex_lock(&thread->lock);
    owner_forget(thread, transfer->owner);
    list_append(&thread->done, &transfer->link);
    bool is_stopped = thread->stopped;
    pthread_mutex_unlock(&thread->lock);
    while (!is_stopped && loop_post(thread->loop, done_call, thread) < 0) {
        (void)usleep(POST_RETRY_US);
        pthread_mutex_lock(&thread->lock);
        is_stopped = thread->stopped;
        pthread_mutex_unlock(&thread->lock);
    }
}

static void transfer_serve(struct transfer_thread *thread, struct file_transfer *transfer,
                           short ready)
{
    int64_t now_ms = clock_monotonic_ms();
    int r = 0;
    if (now_ms - transfer->moved_ms > thread->idle_ms || now_ms > transfer->ends_ms)
        r = -ERROR_UNAVAILABLE;
    else if (ready)
        r = transfer->step(transfer);
    if (r != 0)
        transfer_finish(thread, transfer, r);
}

// Waits until a transfer, or the list of those to come, needs attention.
static void transfers_serve(struct transfer_thread *thread)
{
    struct pollfd fds[TRANSFERS_MAX + 1] = {{.fd = thread->wake_fd, .events = POLLIN}};
    nfds_t count = 1;
    uint64_t woken;
    LIST_FOREACH(link, &thread->active)
    {
        const struct file_transfer *transfer = LIST_ITEM(link, struct file_transfer, link);
        fds[count++] = (struct pollfd){.fd = transfer->fd, .events = transfer->events};
    }
    int timeout_ms = list_is_empty(&thread->active) ? -1 : TICK_MS;
    if (poll(fds, count, timeout_ms) > 0 && fds[0].revents)
        (void)!read(thread->wake_fd, &woken, sizeof woken);
    count = 1;
    LIST_FOREACH(link, &thread->active)
    {
        transfer_serve(thread, LIST_ITEM(link, struct file_transfer, link), fds[count++].revents);
    }
}

static void *transfer_thread_run(void *arg)
{
    struct transfer_thread *thread = CAST(transfer_thread, arg);
    for (;;) {
        pthread_mutex_lock(&thread->lock);
        list_append_all(&thread->active, &thread->coming);
        bool is_stopped = thread->stopped;
        pthread_mutex_unlock(&thread->lock);
        if (is_stopped)
            break;
        transfers_serve(thread);
    }
    LIST_FOREACH(link, &thread->active)
    {
        transfer_finish(thread, LIST_ITEM(link, struct file_transfer, link), -ERROR_UNAVAILABLE);
    }
    return NULL;
}

static void transfer_thread_wake(struct transfer_thread *thread)
{
    uint64_t one = 1;
    (void)!write(thread->wake_fd, &one, sizeof one);
}

int transfer_thread_new(struct loop *loop, int64_t idle_ms, struct transfer_thread **ret_thread)
{
    struct transfer_thread *thread = TAGGED_NEW(transfer_thread);
    if (!thread)
        return -ERROR_MEMORY;
    thread->loop = loop;
    thread->idle_ms = idle_ms;
    thread->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pthread_mutex_init(&thread->lock, NULL);
    list_init(&thread->active);
    list_init(&thread->coming);
    list_init(&thread->done);
    if (thread->wake_fd < 0 ||
        pthread_create(&thread->thread, NULL, transfer_thread_run, thread) != 0) {
        close(thread->wake_fd);
        TAGGED_FREE(thread);
        return -ERROR_MEMORY;
    }
    *ret_thread = thread;
    return 0;
}

static bool has_room(const struct transfer_thread *thread, const char *owner)
{
    int own = 0;
    for (int i = 0; i < thread->count; i++)
        own += strcmp(thread->owners[i], owner) == 0;
    return thread->count < TRANSFERS_MAX && own < TRANSFERS_OF_OWNER_MAX;
}

int transfer_thread_add(struct transfer_thread *thread, struct file_transfer *transfer)
{
    transfer->moved_ms = clock_monotonic_ms();
    transfer->ends_ms = transfer->moved_ms + TRANSFER_MAX_MS;
    list_init(&transfer->link);
    pthread_mutex_lock(&thread->lock);
    bool fits = has_room(thread, transfer->owner);
    if (fits) {
        memcpy(thread->owners[thread->count++], transfer->owner, ID_SIZE);
        list_append(&thread->coming, &transfer->link);
    }
    pthread_mutex_unlock(&thread->lock);
    metric_add(fits ? METRIC_TRANSFERS : METRIC_TRANSFERS_REFUSED, 1);
    if (!fits)
        return -ERROR_BUSY;
    transfer_thread_wake(thread);
    return 0;
}

void transfer_thread_free(struct transfer_thread *thread)
{
    if (!thread)
        return;
    pthread_mutex_lock(&thread->lock);
    thread->stopped = true;
    pthread_mutex_unlock(&thread->lock);
    transfer_thread_wake(thread);
    pthread_join(thread->thread, NULL);
    done_call(thread);
    close(thread->wake_fd);
    pthread_mutex_destroy(&thread->lock);
    TAGGED_FREE(thread);
}
