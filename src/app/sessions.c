// SPDX-License-Identifier: Apache-2.0
// Announces changed tokens, users and apps to all loops of this instance and, through Redis, to all
// other instances.
#include "sessions.h"

#include "base/check.h"
#include "base/error.h"
#include "base/list.h"
#include "events/event.h"
#include "unread/keys.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// After this many repeats, other instances have noticed by themselves.
enum { REPEAT_MS = 250, REPEATS_MAX = 400, UNPUBLISHED_MAX = 10000 };

// An id to be announced to another loop, or to Redis.
struct notice {
    uint32_t tag;
    struct list link;
    struct sessions *sessions;
    char id[EVENT_ID_SIZE];
    int repeats;
};

struct sessions {
    uint32_t tag;
    struct loop *loop;
    struct cache *cache;
    sessions_fn *fn;
    void *arg;
    struct sessions *const *all;
    int count;
    struct list unpublished; // to be published again
    int unpublished_count;   // including those being published
    struct loop_timer *timer;
    pthread_mutex_t lock; // protects the inbox
    struct list inbox;    // from other loops
};

static struct notice *notice_new(struct sessions *sessions, const char *id)
{
    struct notice *notice = TAGGED_NEW(notice);

    if (!notice)
        return NULL;
    notice->sessions = sessions;
    snprintf(notice->id, sizeof notice->id, "%s", id);
    return notice;
}

static void notices_free(struct list *notices)
{
    LIST_FOREACH(link, notices)
    {
        list_remove(link);
        free(LIST_ITEM(link, struct notice, link));
    }
}

static void inbox_take(void *arg)
{
    struct sessions *sessions = CAST(sessions, arg);
    struct list taken;

    list_init(&taken);
    pthread_mutex_lock(&sessions->lock);
    list_append_all(&taken, &sessions->inbox);
    pthread_mutex_unlock(&sessions->lock);
    LIST_FOREACH(link, &taken)
    {
        sessions->fn(sessions->arg, LIST_ITEM(link, struct notice, link)->id);
    }
    notices_free(&taken);
}

// Without memory for a notice, the other loop notices through its own checks.
static void loop_notify(struct sessions *other, const char *id)
{
    struct notice *notice = notice_new(other, id);

    if (!notice)
        return;
    pthread_mutex_lock(&other->lock);
    list_append(&other->inbox, &notice->link);
    pthread_mutex_unlock(&other->lock);
    (void)!loop_post(other->loop, inbox_take, other);
}

static void on_published(void *arg, int r, const struct cache_value *value)
{
    struct notice *notice = CAST(notice, arg);
    struct sessions *sessions = notice->sessions;

    (void)value;
    if (r == 0 || ++notice->repeats == REPEATS_MAX) {
        sessions->unpublished_count--;
        TAGGED_FREE(notice);
        return;
    }
    if (list_is_empty(&sessions->unpublished))
        loop_timer_set(sessions->timer, REPEAT_MS);
    list_append(&sessions->unpublished, &notice->link);
}

static void notice_publish(struct notice *notice)
{
    const char *texts[] = {"SPUBLISH", KEY_SESSION_TOPIC, notice->id};

    cache_call(notice->sessions->cache, 3, texts, NULL, on_published, notice);
}

static void on_repeat(void *arg)
{
    struct sessions *sessions = CAST(sessions, arg);
    struct list again;

    list_init(&again);
    list_append_all(&again, &sessions->unpublished);
    LIST_FOREACH(link, &again)
    {
        list_remove(link);
        notice_publish(LIST_ITEM(link, struct notice, link));
    }
}

void sessions_publish(struct sessions *sessions, const char *id)
{
    bool is_full = sessions->unpublished_count >= UNPUBLISHED_MAX;
    struct notice *notice = is_full ? NULL : notice_new(sessions, id);

    for (int i = 0; i < sessions->count; i++)
        if (sessions->all[i] != sessions)
            loop_notify(sessions->all[i], id);
    sessions->fn(sessions->arg, id);
    if (!notice)
        return;
    sessions->unpublished_count++;
    notice_publish(notice);
}

int sessions_new(struct loop *loop, struct cache *cache, sessions_fn *fn, void *arg,
                 struct sessions **ret_sessions)
{
    struct sessions *sessions = calloc(1, sizeof *sessions);

    if (!sessions)
        return -ERROR_MEMORY;
    *sessions =
        (struct sessions){.tag = TAG(sessions), .loop = loop, .cache = cache, .fn = fn, .arg = arg};
    list_init(&sessions->unpublished);
    list_init(&sessions->inbox);
    pthread_mutex_init(&sessions->lock, NULL);
    int r = loop_timer_new(loop, on_repeat, sessions, &sessions->timer);
    if (r < 0) {
        sessions_free(sessions);
        return r;
    }
    *ret_sessions = sessions;
    return 0;
}

void sessions_set_all(struct sessions *sessions, struct sessions *const *all, int count)
{
    sessions->all = all;
    sessions->count = count;
}

void sessions_free(struct sessions *sessions)
{
    if (!sessions)
        return;
    notices_free(&sessions->unpublished);
    notices_free(&sessions->inbox);
    loop_timer_free(sessions->timer);
    pthread_mutex_destroy(&sessions->lock);
    TAGGED_FREE(sessions);
}
