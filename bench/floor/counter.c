// SPDX-License-Identifier: Apache-2.0
#include "counter.h"

#include "../common/tool.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct list {
    const char **channels;
    size_t count, room;
};

struct counter {
    redisContext *redis; // the thread's
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct list round; // being sent
    struct list next;  // under the lock
    bool ends;         // under the lock
};

static void list_add(struct list *list, const char *channel)
{
    if (list->count == list->room) {
        list->room = list->room * 2 + 64;
        list->channels = tool_grow(list->channels, list->room * sizeof(*list->channels));
    }
    list->channels[list->count++] = channel;
}

static void channel_count(redisContext *redis, const char *channel)
{
    const char *words[] = {"INCR", channel};
    size_t lens[] = {4, strlen(channel)};

    if (redisAppendCommandArgv(redis, 2, words, lens) != REDIS_OK)
        tool_die("redis: %s", redis->errstr);
}

static void list_count(redisContext *redis, const struct list *list)
{
    void *reply;

    for (size_t i = 0; i < list->count; i++)
        channel_count(redis, list->channels[i]);
    for (size_t i = 0; i < list->count; i++) {
        if (redisGetReply(redis, &reply) != REDIS_OK)
            tool_die("redis: %s", redis->errstr);
        freeReplyObject(reply);
    }
}

// Takes what was added, and leaves `ret_list`, emptied, for what comes next. False: nothing comes
// any more.
static bool list_take(struct counter *counter, struct list *ret_list)
{
    struct list spare = *ret_list;

    spare.count = 0;
    pthread_mutex_lock(&counter->lock);
    while (counter->next.count == 0 && !counter->ends)
        pthread_cond_wait(&counter->changed, &counter->lock);
    *ret_list = counter->next;
    counter->next = spare;
    pthread_mutex_unlock(&counter->lock);
    return ret_list->count > 0;
}

static void *run(void *arg)
{
    struct counter *counter = arg;
    struct list list = {0};

    while (list_take(counter, &list))
        list_count(counter->redis, &list);
    free(list.channels);
    return NULL;
}

struct counter *counter_new(unsigned redis_port)
{
    struct counter *counter = tool_alloc(1, sizeof(*counter));

    counter->redis = redisConnect("127.0.0.1", (int)redis_port);
    if (!counter->redis || counter->redis->err != 0)
        tool_die("redis: cannot connect");
    pthread_mutex_init(&counter->lock, NULL);
    pthread_cond_init(&counter->changed, NULL);
    if (pthread_create(&counter->thread, NULL, run, counter) != 0)
        tool_die("no thread");
    return counter;
}

void counter_free(struct counter *counter)
{
    pthread_mutex_lock(&counter->lock);
    counter->ends = true;
    pthread_cond_signal(&counter->changed);
    pthread_mutex_unlock(&counter->lock);
    pthread_join(counter->thread, NULL);
    redisFree(counter->redis);
    free(counter->round.channels);
    free(counter->next.channels);
    free(counter);
}

void counter_add(struct counter *counter, const char *channel)
{
    list_add(&counter->round, channel);
}

void counter_send(struct counter *counter)
{
    pthread_mutex_lock(&counter->lock);
    for (size_t i = 0; i < counter->round.count; i++)
        list_add(&counter->next, counter->round.channels[i]);
    pthread_cond_signal(&counter->changed);
    pthread_mutex_unlock(&counter->lock);
    counter->round.count = 0;
}
