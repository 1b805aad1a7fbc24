// SPDX-License-Identifier: Apache-2.0
// The bitmap strategy: one bit per member number; 1 means nothing is unread. A post deletes the
// whole bitmap. A markUnread increases the channel's generation, since a bit does not record its
// epoch.
#include "unread/strategy.h"

static bool never(const struct run *run)
{
    (void)run;
    return false;
}

static bool rebuild(struct fcall *call, const struct unread_view *view, const int64_t *tss,
                    const int64_t *seqs, int count)
{
    (void)tss;
    (void)seqs;
    (void)count;
    if (view->unread > 0 || view->member.number < 0)
        return false;
    strategy_call_begin(call, "bitmap_install", view);
    return true;
}

static bool on_read(struct fcall *call, const struct unread_view *view, const int64_t *tss,
                    int count)
{
    return rebuild(call, view, tss, NULL, count);
}

static void count(struct fcall *call, const struct unread_view *view)
{
    strategy_call_begin(call, "bitmap_read", view);
}

const struct strategy_ops strategy_bitmap = {
    .name = "bitmap",
    .run_max = 512,
    .walks = never,
    .forgets = never,
    .on_read = on_read,
    .count = count,
    .rebuild = rebuild,
};
