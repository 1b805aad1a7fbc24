// SPDX-License-Identifier: Apache-2.0
// The zset strategy: each member's newest unread messages, ts → seq. Messages beyond the cap are
// removed and their limit recorded as a floor; when reading reaches the floor, the set is read
// again from Postgres.
#include "unread/strategy.h"

// With a cap of at most 100, a set never has more than 128 members, the limit of Redis' compact
// encoding.
enum { TRIM_EVERY = 8, RUN_MAX = 8 };

static bool walks(const struct run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->events[i]->counted || run->events[i]->deleted_ord > 0)
            return true;
    return false;
}

static bool forgets(const struct run *run)
{
    (void)run;
    return false;
}

static int posts_of(const struct run *run)
{
    int posts = 0;

    for (size_t i = 0; i < run->count; i++)
        posts += run->events[i]->counted;
    return posts;
}

// The number of messages to keep before adding those of the run; 0: no trimming this time.
static int64_t keep_count(const struct run *run, int posts)
{
    // By seq: an event that was read back has a later event's ord.
    int64_t before = run->events[0]->seq - 1;
    int64_t last = before + (int64_t)run->count;

    if (last / TRIM_EVERY == before / TRIM_EVERY)
        return 0;
    return unread_cap() + 1 > posts ? unread_cap() + 1 - posts : 1;
}

static void posts_add(struct fcall *call, const struct run *run)
{
    int posts = posts_of(run);

    fcall_int(call, keep_count(run, posts));
    fcall_int(call, posts);
    for (size_t i = 0; i < run->count; i++)
        if (run->events[i]->counted) {
            fcall_int(call, run->events[i]->ts);
            fcall_int(call, run->events[i]->seq);
        }
}

static void deletes_add(struct fcall *call, const struct run *run)
{
    int deletes = 0;

    for (size_t i = 0; i < run->count; i++)
        deletes += run->events[i]->deleted_ord > 0;
    fcall_int(call, deletes);
    for (size_t i = 0; i < run->count; i++)
        if (run->events[i]->deleted_ord > 0)
            fcall_int(call, run->events[i]->ts);
}

static void on_events(struct fcall *call, const struct run *run, int authors)
{
    if (authors == 0) {
        posts_add(call, run);
        deletes_add(call, run);
        return;
    }
    for (int i = 0; i < 3; i++)
        fcall_int(call, 0); // nothing kept, no posts, no deletes
    for (size_t i = 0; i < run->count; i++)
        if (run->events[i]->counted) {
            fcall_int(call, authors++);
            fcall_int(call, run->events[i]->ts);
        }
}

static bool on_read(struct fcall *call, const struct unread_view *view, const int64_t *tss,
                    int count)
{
    strategy_call_begin(call, "zset_mark", view);
    fcall_int(call, view->member.single_version);
    fcall_int(call, view->member.ts);
    for (int i = 0; i < count; i++)
        fcall_int(call, tss[i]);
    return true;
}

static void count(struct fcall *call, const struct unread_view *view)
{
    strategy_call_begin(call, "zset_read", view);
    fcall_int(call, view->member.single_version);
    fcall_int(call, view->member.ts);
    fcall_int(call, unread_cap());
}

static bool rebuild(struct fcall *call, const struct unread_view *view, const int64_t *tss,
                    const int64_t *seqs, int count)
{
    int64_t floor = view->member.ts;

    for (int i = 0; count > unread_cap() && i < count; i++)
        floor = i == 0 || tss[i] - 1 < floor ? tss[i] - 1 : floor;
    strategy_call_begin(call, "zset_install", view);
    fcall_int(call, view->member.single_version);
    fcall_int(call, floor);
    for (int i = 0; i < count; i++) {
        fcall_int(call, tss[i]);
        fcall_int(call, seqs[i]);
    }
    return true;
}

const struct strategy_ops strategy_zset = {
    .name = "zset",
    .walk_function = "zset_walk",
    .run_max = RUN_MAX,
    .walks = walks,
    .forgets = forgets,
    .on_events = on_events,
    .on_read = on_read,
    .count = count,
    .rebuild = rebuild,
    .rebuilds_messages = true,
};
