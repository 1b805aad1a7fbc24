// SPDX-License-Identifier: Apache-2.0
// A loop's timers, in a binary heap.
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"

#include "loop_internal.h"

static const size_t place_none = SIZE_MAX;

struct loop_timer {
    struct loop_core *core;
    loop_fn *fn;
    void *arg;
    int64_t deadline_us;
    size_t place; // index in the heap, or place_none
};

static void heap_put(struct loop_timers *timers, size_t place, struct loop_timer *timer)
{
    timers->heap[place] = timer;
    timer->place = place;
}

// Moves `timer` up from the free slot `place` to its position.
static void heap_rise(struct loop_timers *timers, size_t place, struct loop_timer *timer)
{
    while (place > 0) {
        struct loop_timer *parent = timers->heap[(place - 1) / 2];
        if (parent->deadline_us <= timer->deadline_us)
            break;
        size_t above = parent->place;
        heap_put(timers, place, parent);
        place = above;
    }
    heap_put(timers, place, timer);
}

static void heap_sink(struct loop_timers *timers, size_t place, struct loop_timer *timer)
{
    for (;;) {
        size_t child = 2 * place + 1;
        if (child >= timers->count)
            break;
        if (child + 1 < timers->count &&
            timers->heap[child + 1]->deadline_us < timers->heap[child]->deadline_us)
            child++;
        if (timers->heap[child]->deadline_us >= timer->deadline_us)
            break;
        heap_put(timers, place, timers->heap[child]);
        place = child;
    }
    heap_put(timers, place, timer);
}

// Inserts `timer` at its position, starting from the free slot `place`.
static void heap_settle(struct loop_timers *timers, size_t place, struct loop_timer *timer)
{
    if (place > 0 && timers->heap[(place - 1) / 2]->deadline_us > timer->deadline_us)
        heap_rise(timers, place, timer);
    else
        heap_sink(timers, place, timer);
}

int64_t loop_timers_next_us(const struct loop_timers *timers)
{
    ASSERT(timers->count > 0);
    return timers->heap[0]->deadline_us;
}

void loop_timers_run(struct loop_timers *timers, int64_t now_us)
{
    while (timers->count > 0 && timers->heap[0]->deadline_us <= now_us) {
        struct loop_timer *timer = timers->heap[0];
        loop_timer_clear(timer);
        timer->fn(timer->arg);
    }
}

int loop_timer_new(struct loop *loop, loop_fn *fn, void *arg, struct loop_timer **ret_timer)
{
    struct loop_core *core = loop_core_of(loop);
    struct loop_timers *timers = &core->timers;

    ASSERT(fn && loop_core_is_mine(core));
    if (timers->existing == timers->capacity) {
        size_t capacity = timers->capacity ? 2 * timers->capacity : 16;
        void *heap = reallocarray(timers->heap, capacity, sizeof *timers->heap);
        if (!heap)
            return -ERROR_MEMORY;
        timers->heap = heap;
        timers->capacity = capacity;
    }
    struct loop_timer *timer = malloc(sizeof *timer);
    if (!timer)
        return -ERROR_MEMORY;
    *timer = (struct loop_timer){.core = core, .fn = fn, .arg = arg, .place = place_none};
    timers->existing++;
    *ret_timer = timer;
    return 0;
}

void loop_timer_set(struct loop_timer *timer, int64_t delay_ms)
{
    ASSERT(delay_ms >= 0 && loop_core_is_mine(timer->core));
    struct loop_timers *timers = &timer->core->timers;
    timer->deadline_us = clock_monotonic_us() + delay_ms * 1000;
    size_t place = timer->place == place_none ? timers->count++ : timer->place;
    heap_settle(timers, place, timer);
}

void loop_timer_clear(struct loop_timer *timer)
{
    ASSERT(loop_core_is_mine(timer->core));
    if (timer->place == place_none)
        return;
    struct loop_timers *timers = &timer->core->timers;
    ASSERT(timer->place < timers->count && timers->heap[timer->place] == timer);
    struct loop_timer *last = timers->heap[--timers->count];
    if (last != timer)
        heap_settle(timers, timer->place, last);
    timer->place = place_none;
}

void loop_timer_free(struct loop_timer *timer)
{
    if (!timer)
        return;
    loop_timer_clear(timer);
    ASSERT(timer->core->timers.existing > timer->core->timers.count);
    timer->core->timers.existing--;
    free(timer);
}
