// SPDX-License-Identifier: Apache-2.0
#include "starter_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"

enum { POST_PAUSE_US = 10000 };

struct starter {
    struct loop *loop;
    const struct postgres_keywords *keywords;
    starter_fn *fn;
    void *arg;
    pthread_t thread;
    PGconn *conn; // the thread's until it has posted, then the loop's
};

static void starter_hand_over(void *arg)
{
    struct starter *starter = arg;
    starter->fn(starter->arg, TAKE(starter->conn));
}

static void *starter_run(void *arg)
{
    struct starter *starter = arg;
    starter->conn = PQconnectStartParams(starter->keywords->keys, starter->keywords->values, 1);
    // A loop whose inbox is full is busy, not gone.
    while (loop_post(starter->loop, starter_hand_over, starter) < 0)
        usleep(POST_PAUSE_US);
    return NULL;
}

int starter_new(struct loop *loop, const struct postgres_keywords *keywords, starter_fn *fn,
                void *arg, struct starter **ret_starter)
{
    struct starter *starter = malloc(sizeof *starter);
    if (!starter)
        return -ERROR_MEMORY;
    *starter = (struct starter){.loop = loop, .keywords = keywords, .fn = fn, .arg = arg};
    if (pthread_create(&starter->thread, NULL, starter_run, starter) != 0) {
        free(starter);
        return -ERROR_UNAVAILABLE;
    }
    *ret_starter = starter;
    return 0;
}

void starter_free(struct starter *starter)
{
    if (!starter)
        return;
    pthread_join(starter->thread, NULL);
    PQfinish(starter->conn);
    free(starter);
}
