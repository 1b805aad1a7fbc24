// SPDX-License-Identifier: Apache-2.0
// C11's threads by pthread's, for programs built with TSan. librdkafka uses the former, which the
// TSan of gcc 12 does not know: it crashes in threads made by them, and would miss what they order.
// glibc's types of both kinds have the same size and layout.
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "mutexes are the same");
static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "conditions are the same");

static int result(int error)
{
    switch (error) {
    case 0:
        return thrd_success;
    case EBUSY:
        return thrd_busy;
    case ENOMEM:
        return thrd_nomem;
    case ETIMEDOUT:
        return thrd_timedout;
    default:
        return thrd_error;
    }
}

struct start {
    thrd_start_t function;
    void *argument;
};

static void *run(void *arg)
{
    struct start start = *(struct start *)arg;
    free(arg);
    return (void *)(intptr_t)start.function(start.argument);
}

int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
    struct start *start = malloc(sizeof *start);
    if (start == NULL)
        return thrd_nomem;
    *start = (struct start){function, argument};
    int error = pthread_create(thread, NULL, run, start);
    if (error != 0)
        free(start);
    return result(error);
}

int thrd_join(thrd_t thread, int *ret_result)
{
    void *value;
    int error = pthread_join(thread, &value);
    if (error == 0 && ret_result != NULL)
        *ret_result = (int)(intptr_t)value;
    return result(error);
}

int thrd_detach(thrd_t thread)
{
    return result(pthread_detach(thread));
}

int mtx_init(mtx_t *mutex, int type)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (type & mtx_recursive)
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    int error = pthread_mutex_init((pthread_mutex_t *)mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return result(error);
}

int mtx_lock(mtx_t *mutex)
{
    return result(pthread_mutex_lock((pthread_mutex_t *)mutex));
}

int mtx_trylock(mtx_t *mutex)
{
    return result(pthread_mutex_trylock((pthread_mutex_t *)mutex));
}

int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict until)
{
    return result(pthread_mutex_timedlock((pthread_mutex_t *)mutex, until));
}

int mtx_unlock(mtx_t *mutex)
{
    return result(pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

void mtx_destroy(mtx_t *mutex)
{
    pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

int cnd_init(cnd_t *condition)
{
    return result(pthread_cond_init((pthread_cond_t *)condition, NULL));
}

int cnd_signal(cnd_t *condition)
{
    return result(pthread_cond_signal((pthread_cond_t *)condition));
}

int cnd_broadcast(cnd_t *condition)
{
    return result(pthread_cond_broadcast((pthread_cond_t *)condition));
}

int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    return result(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex));
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
                  const struct timespec *restrict until)
{
    return result(
        pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until));
}

void cnd_destroy(cnd_t *condition)
{
    pthread_cond_destroy((pthread_cond_t *)condition);
}
