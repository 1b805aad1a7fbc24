// SPDX-License-Identifier: Apache-2.0
// The counter strategy: a number per member, incremented by each post. A delete does not know whose
// numbers to decrement, so it makes all counts of the channel unknown; each is recounted in
// Postgres on demand.
#include "unread/strategy.h"

static bool walks(const struct run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->events[i]->counted)
            return true;
    return false;
}

static bool forgets(const struct run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->events[i]->deleted_ord > 0)
            return true;
    return false;
}

static void on_events(struct fcall *call, const struct run *run, int authors)
{
    int posts = 0;

    for (size_t i = 0; i < run->count; i++)
        posts += run->events[i]->counted;
    fcall_int(call, authors > 0 ? 0 : posts);
    for (int i = 0; authors > 0 && i < posts; i++) {
        fcall_int(call, authors + i);
        fcall_int(call, 1);
    }
}

static bool rebuild(struct fcall *call, const struct unread_view *view, const int64_t *tss,
                    const int64_t *seqs, int count)
{
    (void)tss;
    (void)seqs;
    (void)count;
    strategy_call_begin(call, "counter_install", view);
    fcall_int(call, view->unread);
    fcall_int(call, view->member.single_version);
    fcall_int(call, view->member.epoch);
    fcall_int(call, view->member.ts);
    return true;
}

static bool on_read(struct fcall *call, const struct unread_view *view, const int64_t *tss,
                    int count)
{
    return rebuild(call, view, tss, NULL, count);
}

static void count(struct fcall *call, const struct unread_view *view)
{
    strategy_call_begin(call, "counter_read", view);
    fcall_int(call, view->member.single_version);
    fcall_int(call, view->member.epoch);
    fcall_int(call, view->member.ts);
}

const struct strategy_ops strategy_counter = {
    .name = "counter",
    .walk_function = "counter_walk",
    .run_max = 64,
    .walks = walks,
    .forgets = forgets,
    .on_events = on_events,
    .on_read = on_read,
    .count = count,
    .rebuild = rebuild,
};
