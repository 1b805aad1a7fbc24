// SPDX-License-Identifier: Apache-2.0
// Work parked on a locked row: retries the first item of each key with growing pauses, in order.
#include "store/aside.h"

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// REMEMBERED_MS: how long a key stays held after its last item was answered while the row was
// locked. Later work for that row is then tried here, where it delays nobody else.
enum { PAUSE_MIN_MS = 5, PAUSE_MAX_MS = 200, REMEMBERED_MS = 5000 };

#define NEVER INT64_MAX

struct held_key {
    UT_hash_handle hh;
    char key[ASIDE_KEY_SIZE];
    struct list items;
    int64_t pause_ms;
    int64_t due_ms; // next try, or release of the key; NEVER while an item is tried
};

struct aside {
    uint32_t tag;
    struct loop *loop;
    aside_try_fn *try;
    aside_return_fn *back;
    void *arg;
    struct held_key *keys; // uthash
    struct loop_timer *timer;
    int waiting;
};

static unsigned key_length(const char *key)
{
    return (unsigned)strnlen(key, ASIDE_KEY_SIZE - 1);
}

static struct held_key *held_find(const struct aside *aside, const char *key)
{
    struct held_key *held;

    HASH_FIND(hh, aside->keys, key, key_length(key), held);
    return held;
}

// Like held_find(); the key must be held.
static struct held_key *held_get(const struct aside *aside, const char *key)
{
    struct held_key *held = held_find(aside, key);

    ASSERT(held);
    return held;
}

static struct held_key *held_new(struct aside *aside, const char *key)
{
    struct held_key *held = memory_must_new(sizeof *held);
    unsigned length = key_length(key);

    memcpy(held->key, key, length);
    list_init(&held->items);
    held->pause_ms = PAUSE_MIN_MS;
    held->due_ms = NEVER;
    HASH_ADD(hh, aside->keys, key, length, held);
    return held;
}

// Releases the key and hands back its waiting items.
static void held_free(struct aside *aside, struct held_key *held)
{
    struct list items;

    list_init(&items);
    list_append_all(&items, &held->items);
    HASH_DELETE(hh, aside->keys, held);
    free(held);
    LIST_FOREACH(item, &items)
    {
        list_remove(item);
        aside->waiting--;
        aside->back(aside->arg, item);
    }
}

static void timer_start(struct aside *aside)
{
    int64_t now_ms = loop_now_ms(aside->loop);
    int64_t due_ms = NEVER;

    for (const struct held_key *held = aside->keys; held; held = held->hh.next)
        if (held->due_ms < due_ms)
            due_ms = held->due_ms;
    if (due_ms != NEVER)
        loop_timer_set(aside->timer, due_ms > now_ms ? due_ms - now_ms : 0);
}

static void held_wait(struct aside *aside, struct held_key *held, int64_t pause_ms)
{
    held->due_ms = loop_now_ms(aside->loop) + pause_ms;
    timer_start(aside);
}

static void held_pause(struct aside *aside, struct held_key *held)
{
    held_wait(aside, held, held->pause_ms);
    held->pause_ms = held->pause_ms < PAUSE_MAX_MS / 2 ? held->pause_ms * 2 : PAUSE_MAX_MS;
}

static void held_try(struct aside *aside, struct held_key *held)
{
    struct list *item = held->items.next;

    if (list_is_empty(&held->items)) {
        held_free(aside, held);
        return;
    }
    list_remove(item);
    aside->waiting--;
    held->due_ms = NEVER;
    aside->try(aside->arg, held->key, item);
}

static void on_timer(void *arg)
{
    struct aside *aside = CAST(aside, arg);
    struct held_key *held;
    struct held_key *next;

    HASH_ITER(hh, aside->keys, held, next)
    if (held->due_ms <= loop_now_ms(aside->loop))
        held_try(aside, held);
    timer_start(aside);
}

int aside_new(struct loop *loop, aside_try_fn *try, aside_return_fn *back, void *arg,
              struct aside **ret_aside)
{
    struct aside *aside = calloc(1, sizeof *aside);

    if (!aside)
        return -ERROR_MEMORY;
    *aside = (struct aside){.tag = TAG(aside), .loop = loop, .try = try, .back = back, .arg = arg};
    int r = loop_timer_new(loop, on_timer, aside, &aside->timer);
    if (r < 0) {
        TAGGED_FREE(aside);
        return r;
    }
    *ret_aside = aside;
    return 0;
}

void aside_free(struct aside *aside)
{
    if (!aside)
        return;
    while (aside->keys)
        held_free(aside, aside->keys);
    ASSERT(aside->waiting == 0);
    loop_timer_free(aside->timer);
    TAGGED_FREE(aside);
}

bool aside_is_empty(const struct aside *aside)
{
    return !aside->keys;
}

bool aside_holds(const struct aside *aside, const char *key)
{
    return held_find(aside, key);
}

void aside_add(struct aside *aside, const char *key, struct list *item)
{
    struct held_key *held = held_find(aside, key);

    if (!held) {
        held = held_new(aside, key);
        held_pause(aside, held);
    } else if (list_is_empty(&held->items) && held->due_ms != NEVER) {
        held_wait(aside, held, 0);
    }
    list_append(&held->items, item);
    aside->waiting++;
}

void aside_begin(struct aside *aside, const char *key)
{
    ASSERT(!aside_holds(aside, key));
    held_new(aside, key);
}

void aside_again(struct aside *aside, const char *key, struct list *item)
{
    struct held_key *held = held_get(aside, key);

    ASSERT(held->due_ms == NEVER);       // its first item is being tried
    list_append(held->items.next, item); // before the first
    aside->waiting++;
    held_pause(aside, held);
}

void aside_next(struct aside *aside, const char *key)
{
    struct held_key *held = held_get(aside, key);

    held_wait(aside, held, list_is_empty(&held->items) ? REMEMBERED_MS : 0);
}

void aside_done(struct aside *aside, const char *key)
{
    held_free(aside, held_get(aside, key));
}

int aside_waiting(const struct aside *aside)
{
    return aside->waiting;
}
