// SPDX-License-Identifier: Apache-2.0
// Walks all members of a channel in Redis, for strategies with per-member state.
#include "unread/member_walk.h"
#include "base/check.h"

#include "base/error.h"
#include "base/id.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "unread/keys.h"
#include "unread/member_lists.h"
#include "unread/strategy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHUNK = 1000, WALKS_MAX = 64, BUILD_SIZE = 24, WALKER_SIZE = ID_SIZE + 24 };

// If each instance has a log of its own, the previous event may still be on its way in another
// instance, or being walked there: how long to wait for it.
enum { LATER_TRIES = 8, LATER_MS = 4 };

// A run being applied to the members of its channel.
struct walk {
    struct run run;
    const struct strategy_ops *ops;
    char build[BUILD_SIZE]; // "": no walk needed
    bool waits;             // to begin
    struct member_list list;
    int chunk;
};

// The kind of the next reply.
enum answer { ANSWER_BUILD, ANSWER_LIST, ANSWER_IGNORED };
struct expected {
    struct walk *walk;
    enum answer answer;
};

struct walker {
    uint32_t tag;
    struct pipeline *pipeline;
    struct session *session;
    char name[ID_SIZE];
    uint64_t round;
    char id[WALKER_SIZE]; // of this round: chunks of an earlier round are rejected
    struct walk walks[WALKS_MAX];
    size_t walk_count;
    struct expected expected[4 * WALKS_MAX];
    size_t expected_count;
    size_t answered;
    struct fcall call;
};

struct walker *walker_new(struct pipeline *pipeline, struct session *session)
{
    struct walker *walker = memory_must_new(sizeof *walker);

    walker->tag = TAG(walker);
    walker->pipeline = pipeline;
    walker->session = session;
    id_make('F', walker->name);
    return walker;
}

void walker_free(struct walker *walker)
{
    TAGGED_FREE(walker);
}

static bool needs_walk(const struct event *event)
{
    return event->seq > 0 && event->head.strategy != STRATEGY_SEQUENCE &&
           strategy_find(event->head.strategy);
}

static bool same_channel(const struct event *a, const struct event *b)
{
    return strcmp(a->channel_id, b->channel_id) == 0;
}

// Whether both can be in one walk: `next` follows `last` without a gap.
static bool follows(const struct event *last, const struct event *next)
{
    return same_channel(last, next) && next->seq == last->seq + 1 &&
           next->head.generation == last->head.generation &&
           next->head.strategy == last->head.strategy;
}

// The run at the start of `events`, whose first event needs_walk().
static struct run run_take(struct event *const *events, size_t count, size_t max)
{
    struct run run = {.events = events, .count = 1};

    while (run.count < count && run.count < max &&
           follows(events[run.count - 1], events[run.count]))
        run.count++;
    return run;
}

static int64_t first_seq(const struct run *run)
{
    return run->events[0]->seq;
}

static int64_t last_seq(const struct run *run)
{
    return run->events[run->count - 1]->seq;
}

static void expect(struct walker *walker, struct walk *walk, enum answer answer)
{
    ASSERT(walker->expected_count < sizeof walker->expected / sizeof *walker->expected);
    walker->expected[walker->expected_count++] = (struct expected){walk, answer};
}

static void call_add(struct walker *walker)
{
    fcall_end(&walker->call);
    pipeline_add(walker->pipeline, walker->call.count, walker->call.texts, NULL);
}

static bool has_posts(const struct run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->events[i]->counted)
            return true;
    return false;
}

static void walk_key_add(struct fcall *call, const struct walk *walk)
{
    char key[KEY_SIZE];

    key_walk(key, walk->run.events[0]->channel_id);
    fcall_key(call, key);
}

static void forget_add(struct walker *walker, const struct walk *walk)
{
    fcall_begin(&walker->call, "walk_forget");
    walk_key_add(&walker->call, walk);
    fcall_int(&walker->call, walk->run.events[0]->head.generation);
    fcall_int(&walker->call, last_seq(&walk->run));
    call_add(walker);
}

static void begin_add(struct walker *walker, struct walk *walk, bool is_patient)
{
    const struct event *event = walk->run.events[0];
    struct fcall *call = &walker->call;
    bool walks = walk->ops->walks(&walk->run);
    char key[KEY_SIZE];

    fcall_begin(call, "walk_begin");
    walk_key_add(call, walk);
    key_bitmap(key, event->channel_id);
    fcall_key(call, key);
    fcall_int(call, event->head.generation);
    fcall_int(call, first_seq(&walk->run));
    fcall_int(call, last_seq(&walk->run));
    fcall_text(call, walker->id);
    fcall_int(call, walks);
    fcall_int(call, has_posts(&walk->run));
    fcall_int(call, is_patient);
    call_add(walker);
    expect(walker, walk, ANSWER_BUILD);
    if (walks) {
        members_read_add(walker->pipeline, event->channel_id, -1);
        expect(walker, walk, ANSWER_LIST);
        expect(walker, walk, ANSWER_IGNORED);
    }
}

static void build_take(struct walk *walk, const char *answer)
{
    walk->waits = strcmp(answer, "later") == 0;
    snprintf(walk->build, BUILD_SIZE, "%s", walk->waits ? "" : answer);
}

static void on_begun(void *arg, int r, const struct cache_value *value)
{
    struct walker *walker = CAST(walker, arg);
    ASSERT(walker->answered < walker->expected_count);
    struct expected *expected = &walker->expected[walker->answered++];

    if (expected->answer == ANSWER_BUILD)
        build_take(expected->walk, r < 0 ? "" : cache_value_text(value));
    else if (expected->answer == ANSWER_LIST)
        member_list_take(&expected->walk->list, r, value);
}

// Adds the arguments by which Redis checks that it is this chunk's turn.
static void turn_add(struct walker *walker, struct walk *walk)
{
    fcall_text(&walker->call, walk->build);
    fcall_int(&walker->call, last_seq(&walk->run));
    fcall_text(&walker->call, walker->id);
    fcall_int(&walker->call, walk->chunk++);
}

static void chunk_add(struct walker *walker, struct walk *walk, const struct member_ids *ids,
                      size_t first)
{
    struct fcall *call = &walker->call;
    size_t end = first + CHUNK < ids->count ? first + CHUNK : ids->count;
    char key[KEY_SIZE];

    fcall_begin(call, walk->ops->walk_function);
    walk_key_add(call, walk);
    for (size_t i = first; i < end; i++) {
        key_unread(key, ids->ids[i], walk->run.events[0]->channel_id);
        fcall_key(call, key);
    }
    turn_add(walker, walk);
    walk->ops->on_events(call, &walk->run, 0);
    call_add(walker);
    metric_add(METRIC_MEMBERS_WALKED, (int64_t)(end - first));
}

static void chunks_add(struct walker *walker, struct walk *walk, const struct member_ids *ids)
{
    for (size_t first = 0; first < ids->count; first += CHUNK) {
        chunk_add(walker, walk, ids, first);
        pipeline_push(walker->pipeline); // lets Redis work while the next chunk is built
    }
}

// The last chunk is the authors, whose own posts do not count for them; then the walk ends.
static void end_add(struct walker *walker, struct walk *walk)
{
    struct fcall *call = &walker->call;
    char key[KEY_SIZE];
    const int first_author = 2;

    fcall_begin(call, walk->ops->walk_function);
    walk_key_add(call, walk);
    for (size_t i = 0; i < walk->run.count; i++) {
        const struct event *event = walk->run.events[i];
        key_unread(key, event->user_id, event->channel_id);
        if (event->counted)
            fcall_key(call, key);
    }
    turn_add(walker, walk);
    walk->ops->on_events(call, &walk->run, first_author);
    call_add(walker);
    fcall_begin(call, "walk_end");
    walk_key_add(call, walk);
    turn_add(walker, walk);
    call_add(walker);
}

static int shards_walk(struct walker *walker, struct walk *walk)
{
    for (int64_t shard = 0; shard < walk->list.shards; shard++) {
        CLEANUP(member_list_done) struct member_list list = MEMBER_LIST;
        int r = members_read_shard(walker->pipeline, walk->run.events[0]->channel_id, shard, &list);
        if (r < 0)
            return r;
        chunks_add(walker, walk, &list.ids);
    }
    return 0;
}

static int members_walk(struct walker *walker, struct walk *walk)
{
    const char *channel_id = walk->run.events[0]->channel_id;

    if (!walk->list.complete) {
        member_list_done(&walk->list);
        int r = members_build(walker->pipeline, walker->session, channel_id);
        if (r >= 0)
            r = members_read_shard(walker->pipeline, channel_id, -1, &walk->list);
        if (r >= 0 && !walk->list.complete)
            r = -ERROR_BUSY; // removed again meanwhile
        if (r < 0)
            return r;
    }
    chunks_add(walker, walk, &walk->list.ids);
    int r = shards_walk(walker, walk);
    if (r >= 0)
        end_add(walker, walk);
    return r;
}

// A walk that cannot end is abandoned: while it is open, no count can be installed.
static int walk_finish(struct walker *walker, struct walk *walk, bool failed)
{
    int r = failed ? -ERROR_UNAVAILABLE : members_walk(walker, walk);

    if (r < 0)
        forget_add(walker, walk);
    return r;
}

static int walks_ask(struct walker *walker, bool is_patient)
{
    walker->expected_count = 0;
    walker->answered = 0;
    for (size_t i = 0; i < walker->walk_count; i++) {
        struct walk *walk = &walker->walks[i];
        if (!walk->waits)
            continue;
        walk->waits = false;
        member_list_done(&walk->list);
        if (walk->ops->forgets(&walk->run)) {
            forget_add(walker, walk);
            expect(walker, walk, ANSWER_IGNORED);
        } else {
            begin_add(walker, walk, is_patient);
        }
    }
    return pipeline_run(walker->pipeline, on_begun, walker);
}

static bool any_waits(const struct walker *walker)
{
    for (size_t i = 0; i < walker->walk_count; i++)
        if (walker->walks[i].waits)
            return true;
    return false;
}

static int walks_begin(struct walker *walker)
{
    const struct timespec pause = {.tv_nsec = LATER_MS * 1000000L};
    int tries = LATER_TRIES;

    snprintf(walker->id, sizeof walker->id, "%s-%" PRIx64, walker->name, ++walker->round);
    int r = walks_ask(walker, true);
    while (r != -ERROR_UNAVAILABLE && any_waits(walker)) {
        nanosleep(&pause, NULL);
        r = walks_ask(walker, --tries > 0);
    }
    return r;
}

// Runs a wave of walks: one run each of at most WALKS_MAX channels.
static void walks_run(struct walker *walker)
{
    bool failed = walks_begin(walker) == -ERROR_UNAVAILABLE;

    for (size_t i = 0; i < walker->walk_count; i++) {
        struct walk *walk = &walker->walks[i];
        if (walk->build[0] != '\0')
            failed = walk_finish(walker, walk, failed) == -ERROR_UNAVAILABLE;
        member_list_done(&walk->list);
    }
    if (pipeline_run(walker->pipeline, NULL, NULL) < 0 || failed)
        metric_add(METRIC_WALKS_FAILED, 1);
    walker->walk_count = 0;
}

// Adds a channel's next run to this wave. Returns the number of its events.
static size_t walk_take(struct walker *walker, struct event *const *events, size_t count)
{
    const struct strategy_ops *ops = strategy_find(events[0]->head.strategy);
    struct walk *walk = &walker->walks[walker->walk_count++];

    *walk = (struct walk){.ops = ops,
                          .waits = true,
                          .run = run_take(events, count, ops->run_max),
                          .list = MEMBER_LIST};
    return walk->run.count;
}

// Whether the channel was switched to a strategy without per-member keys.
static bool leaves_counts(const struct event *event)
{
    return event->kind == EVENT_STRATEGY &&
           (event->head.strategy == STRATEGY_SEQUENCE || event->head.strategy == STRATEGY_BITMAP);
}

static void on_swept(void *arg, int r, const struct cache_value *value)
{
    bool *any = arg;

    *any = *any || (r >= 0 && cache_value_int(value) > 0);
}

static void key_command_add(struct walker *walker, const char *command, const char *key)
{
    const char *const texts[] = {command, key};

    pipeline_add(walker->pipeline, 2, texts, NULL);
}

// Deletes what previous strategies kept of a channel. It would never be used again, so leftovers of
// a failed deletion are harmless. The walk's state stays, because its builds only increase. A
// channel without one was never counted in Redis.
static void counts_sweep(struct walker *walker, const char *channel_id)
{
    CLEANUP(member_ids_done) struct member_ids ids = {0};
    char key[KEY_SIZE];
    bool had_any = false;

    key_walk(key, channel_id);
    key_command_add(walker, "EXISTS", key);
    key_bitmap(key, channel_id);
    key_command_add(walker, "UNLINK", key);
    if (pipeline_run(walker->pipeline, on_swept, &had_any) < 0 || !had_any ||
        members_read(walker->pipeline, walker->session, channel_id, &ids) < 0)
        return;
    for (size_t i = 0; i < ids.count; i++) {
        key_unread(key, ids.ids[i], channel_id);
        key_command_add(walker, "UNLINK", key);
        if ((i + 1) % CHUNK == 0 && pipeline_run(walker->pipeline, NULL, NULL) < 0)
            return;
    }
    if (pipeline_run(walker->pipeline, NULL, NULL) < 0)
        metric_add(METRIC_WALKS_FAILED, 1);
}

void walker_run(struct walker *walker, struct event *const *events, size_t count)
{
    // A channel's second run goes with the next wave.
    for (size_t i = 0; i < count;) {
        if (!needs_walk(events[i])) {
            if (leaves_counts(events[i]))
                counts_sweep(walker, events[i]->channel_id);
            i++;
            continue;
        }
        const struct walk *last =
            walker->walk_count > 0 ? &walker->walks[walker->walk_count - 1] : NULL;
        if (last &&
            (walker->walk_count == WALKS_MAX || same_channel(last->run.events[0], events[i])))
            walks_run(walker);
        i += walk_take(walker, events + i, count - i);
    }
    if (walker->walk_count > 0)
        walks_run(walker);
}
