// SPDX-License-Identifier: Apache-2.0
// The dispatcher's thread, which sends devices their pushes.
#include "notify/dispatcher.h"

#include "activity.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/wait.h"
#include "chat/workspace_ids.h"
#include "device_turns.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REFRESH_MS = 250, // for workspaces with devices
    PAUSE_MAX_MS = 2000,
    MET_EXTRA_S = 15,   // maximum time between a registration's timestamp and its becoming visible
    COST_FACTOR = 20,   // such work takes at most a twentieth of the time
    POLL_MS = 200,      // for turns that become due by themselves: badges, retries, ends of pauses
    GATHER_MS = 15,     // collects outcomes, to store several in one call
    TAKE_MAX = 200,     // devices per call, which locks them
    SETTLE_MAX = 500,   // likewise
    PART_MAX = 512,     // events per call
    DEPTH_MS = 5000,    // between two measurements
    CLEAN_MS = 30000,   // between two deletions of expired rows
    FAULT_MS = 1000,    // while Postgres is down
    BUSY_WAIT_MS = 500, // notify's queue is full
    STOP_EXTRA_MS = 500 // for storing the last outcomes
};

// How long a device stays with a dispatcher that has died.
enum { LEASE_MS = 6000 };

struct dispatcher {
    uint32_t tag;
    struct dispatcher_options options;
    struct device_turns_options turns;
    pthread_t thread;
    struct session *session; // the thread's, like everything above the lock
    struct pipeline *pipeline;
    struct list under_way; // in flight
    struct list settled;   // answered, not stored in Postgres yet
    int64_t count;         // of both
    int64_t refresh_at_ms;
    int64_t looked_ms; // when the workspaces were last read
    int64_t depth_at_ms;
    int64_t clean_at_ms;
    int64_t take_at_ms;
    int64_t ask_at_ms; // when to read activity again; until then Redis counts as down

    pthread_mutex_t lock; // protects everything below
    pthread_cond_t changed;
    struct list answered; // by notify
    bool is_wanted;       // something may be due
    int64_t stop_at_ms;   // 0: running
    int64_t room;         // for jobs, in Postgres
    bool is_known;
    struct buffer workspaces; // with a device, sorted
};

// Whether events of that kind can cause a push or change a badge.
static bool kind_concerns(enum event_kind kind)
{
    return kind == EVENT_POST || kind == EVENT_EDIT || kind == EVENT_DELETE || kind == EVENT_MARK ||
           kind == EVENT_THREAD_MARK || kind == EVENT_THREAD_FOLLOW || kind == EVENT_JOIN ||
           kind == EVENT_LEAVE || kind == EVENT_ARCHIVE || kind == EVENT_UNARCHIVE;
}

// Until the workspaces are known, all of them count as having devices.
static size_t events_choose(struct dispatcher *dispatcher, struct event *const *events,
                            size_t count, struct event **ret_chosen, int64_t *ret_room)
{
    size_t chosen = 0;

    pthread_mutex_lock(&dispatcher->lock);
    for (size_t i = 0; i < count; i++)
        if (kind_concerns(events[i]->kind) &&
            (!dispatcher->is_known ||
             workspace_ids_have(&dispatcher->workspaces, events[i]->workspace_id)))
            ret_chosen[chosen++] = events[i];
    *ret_room = dispatcher->room;
    pthread_mutex_unlock(&dispatcher->lock);
    return chosen;
}

static void dispatcher_wake(struct dispatcher *dispatcher, int64_t jobs)
{
    pthread_mutex_lock(&dispatcher->lock);
    dispatcher->is_wanted = true;
    dispatcher->room -= jobs;
    pthread_cond_signal(&dispatcher->changed);
    pthread_mutex_unlock(&dispatcher->lock);
}

int dispatcher_store(struct dispatcher *dispatcher, struct session *session,
                     struct event *const *events, size_t count)
{
    struct event *chosen[PART_MAX];

    for (size_t done = 0; done < count;) {
        int64_t room;
        size_t part = count - done < PART_MAX ? count - done : PART_MAX;
        size_t wanted = events_choose(dispatcher, events + done, part, chosen, &room);
        int r = wanted > 0 ? device_turns_add(session, chosen, wanted, room) : 0;
        if (r < 0)
            return r;
        if (r > 0)
            dispatcher_wake(dispatcher, r);
        done += part;
    }
    return 0;
}

// Adds the jobs of workspaces that have just become known; their events were skipped so far.
static int workspaces_meet(struct dispatcher *dispatcher, const struct buffer *before)
{
    const struct buffer *now = &dispatcher->workspaces; // only this thread changes it
    int64_t passed_s = (clock_monotonic_ms() - dispatcher->looked_ms) / 1000;
    int r = 0;

    for (size_t at = 0; r >= 0 && at < now->length; at += EVENT_ID_SIZE)
        if (!workspace_ids_have(before, now->data + at))
            r = device_turns_met(dispatcher->session, now->data + at, passed_s + MET_EXTRA_S);
    return r;
}

// Replaces the known workspaces by `ids`, and returns the previous ones in it.
static void workspaces_swap(struct dispatcher *dispatcher, struct buffer *ids)
{
    pthread_mutex_lock(&dispatcher->lock);
    struct buffer before = dispatcher->workspaces;
    dispatcher->workspaces = *ids;
    dispatcher->is_known = true;
    pthread_mutex_unlock(&dispatcher->lock);
    *ids = before;
}

static void workspaces_refresh(struct dispatcher *dispatcher)
{
    CLEANUP(buffer_done) struct buffer ids = BUFFER(SIZE_MAX / 2);
    bool was_known = dispatcher->is_known;
    int64_t now_ms = clock_monotonic_ms();

    if (device_turns_workspaces(dispatcher->session, &ids) < 0)
        return;
    workspaces_swap(dispatcher, &ids);
    if (was_known && workspaces_meet(dispatcher, &ids) < 0) {
        workspaces_swap(dispatcher, &ids); // retried at the next refresh
        return;
    }
    dispatcher->looked_ms = now_ms;
}

// When to repeat work that began at `began_ms` and has just ended: after `pause_ms` at the
// earliest, and not so often that it takes much of the time.
static int64_t pause_after(int64_t began_ms, int64_t pause_ms)
{
    int64_t now_ms = clock_monotonic_ms();
    int64_t wanted_ms = (now_ms - began_ms) * COST_FACTOR;

    if (wanted_ms > PAUSE_MAX_MS)
        wanted_ms = PAUSE_MAX_MS;
    return now_ms + (wanted_ms > pause_ms ? wanted_ms : pause_ms);
}

static void depth_refresh(struct dispatcher *dispatcher)
{
    struct device_turns_depth depth;
    int64_t began_ms = clock_monotonic_ms();

    int r = device_turns_depth(dispatcher->session, &depth);
    dispatcher->depth_at_ms = pause_after(began_ms, DEPTH_MS);
    if (r < 0)
        return;
    metric_set(METRIC_NOTIFY_WAITING, depth.waiting);
    metric_set(METRIC_NOTIFY_OLDEST_S, depth.oldest_s);
    metric_set(METRIC_NOTIFY_DEAD, depth.dead);
    pthread_mutex_lock(&dispatcher->lock);
    dispatcher->room = dispatcher->options.settings.push_jobs_max - depth.waiting;
    pthread_mutex_unlock(&dispatcher->lock);
}

// Periodic work.
static void dispatcher_refresh(struct dispatcher *dispatcher, int64_t now_ms)
{
    if (now_ms < dispatcher->refresh_at_ms)
        return;
    workspaces_refresh(dispatcher);
    dispatcher->refresh_at_ms = pause_after(now_ms, REFRESH_MS);
    if (device_turns_hold(dispatcher->session, &dispatcher->under_way, now_ms, &dispatcher->turns) <
        0)
        log_write(LOG_WARN, "notify", "cannot extend the turns of devices with pushes in flight");
    if (now_ms >= dispatcher->depth_at_ms)
        depth_refresh(dispatcher);
    if (now_ms >= dispatcher->clean_at_ms) {
        int r =
            device_turns_clean(dispatcher->session, dispatcher->options.settings.push_dead_keep_s);
        dispatcher->clean_at_ms = now_ms + (r > 0 ? 0 : CLEAN_MS);
    }
}

// On notify's thread.
static void on_answer(void *arg, const struct notify_answer *answer)
{
    struct device_turn *turn = CAST(device_turn, arg);
    struct dispatcher *dispatcher = CAST(dispatcher, turn->arg);

    if (turn->happened_us > 0 && answer->status != 0)
        metric_time(METRIC_TIMES_NOTIFY_DELAY, clock_wall_us() - turn->happened_us);
    turn->answer = *answer;
    pthread_mutex_lock(&dispatcher->lock);
    list_append(&dispatcher->answered, &turn->answered);
    pthread_cond_signal(&dispatcher->changed);
    pthread_mutex_unlock(&dispatcher->lock);
}

static void turn_end(struct dispatcher *dispatcher, struct device_turn *turn)
{
    list_remove(&turn->link);
    list_append(&dispatcher->settled, &turn->link);
}

// Puts an active user's push off, and reduces it to the badge; nothing is sent if the badge is
// unchanged.
static void turn_hold(struct device_turn *turn, int64_t active_s)
{
    struct notify_message *message = &turn->push->message;

    turn->held_s = active_s;
    turn->is_skipped = turn->badge == turn->shown_badge;
    free(TAKE(message->title));
    free(TAKE(message->subtitle));
    free(TAKE(message->body));
    free(TAKE(message->channel_id)); // with a place, it would withdraw something
    free(TAKE(message->thread_ts));
    free(TAKE(message->ts));
    free(message->collapse_id);
    message->collapse_id = strdup("badge");
    message->seq = 0;
    turn->happened_us = 0;
    metric_add(METRIC_NOTIFY_SKIPPED, 1);
}

static void actives_hold(struct dispatcher *dispatcher, struct list *ready, size_t count)
{
    const char **users = memory_must_new(count * sizeof *users);
    int64_t *active_s = memory_must_new(count * sizeof *active_s);
    size_t i = 0;

    LIST_FOREACH(link, ready)
    {
        users[i++] = LIST_ITEM(link, struct device_turn, link)->user_id;
    }
    if (activity_ask(dispatcher->pipeline, dispatcher->options.settings.push_active_s > 0, users,
                     count, active_s) < 0)
        dispatcher->ask_at_ms = clock_monotonic_ms() + FAULT_MS;
    i = 0;
    LIST_FOREACH(link, ready)
    {
        struct device_turn *turn = LIST_ITEM(link, struct device_turn, link);
        if (active_s[i++] > 0 && turn->push && notify_message_rings(&turn->push->message))
            turn_hold(turn, active_s[i - 1]);
    }
    free(active_s);
    free(users);
}

static void turn_send(struct dispatcher *dispatcher, struct device_turn *turn)
{
    if (!turn->push || turn->is_skipped) {
        turn_end(dispatcher, turn);
        return;
    }
    turn->arg = dispatcher;
    int r = notify_send(dispatcher->options.notify, turn->push, on_answer, turn);
    if (r >= 0) {
        turn->push = NULL; // now owned by notify; the turn, once answered, is in two lists
        return;
    }
    turn->answer = (struct notify_answer){.outcome = NOTIFY_RETRY, .wait_ms = BUSY_WAIT_MS};
    snprintf(turn->answer.reason, sizeof turn->answer.reason, "too many pushes are held");
    turn_end(dispatcher, turn);
}

static void ready_send(struct dispatcher *dispatcher, struct list *ready, size_t count)
{
    struct list taken;

    if (count > 0 && clock_monotonic_ms() >= dispatcher->ask_at_ms)
        actives_hold(dispatcher, ready, count);
    list_init(&taken);
    list_append_all(&taken, ready);
    LIST_FOREACH(link, &taken)
    {
        list_remove(link);
        list_append(&dispatcher->under_way, link);
        dispatcher->count++;
        turn_send(dispatcher, LIST_ITEM(link, struct device_turn, link));
    }
}

// Takes devices that are due. An app gets at most half of the free slots, so that a few slow apps
// leave room for others.
static void take(struct dispatcher *dispatcher, int64_t now_ms)
{
    const struct dispatcher_options *options = &dispatcher->options;
    struct device_turns_options turns = dispatcher->turns;
    int64_t room = options->settings.push_queue_max - dispatcher->count;
    int64_t most = room < TAKE_MAX ? room : TAKE_MAX;
    struct list ready;

    if (most <= 0 || now_ms < dispatcher->take_at_ms || !list_is_empty(&dispatcher->settled))
        return;
    dispatcher->take_at_ms = now_ms + POLL_MS;
    if (dispatcher->is_known && dispatcher->workspaces.length == 0)
        return;
    if (options->secrets->count == 0)
        return; // other instances have the key, or none does
    list_init(&ready);
    turns.app_parallel = (room + 1) / 2 < turns.app_parallel ? (room + 1) / 2 : turns.app_parallel;
    int r = device_turns_take(dispatcher->session, &dispatcher->under_way, most, &turns, &ready);
    if (r < 0) {
        log_write(LOG_WARN, "notify", "cannot read devices that are due for a push");
        dispatcher->take_at_ms = now_ms + FAULT_MS;
    } else if (r == most) {
        dispatcher->take_at_ms = now_ms;
    }
    ready_send(dispatcher, &ready, list_length(&ready));
}

// Moves answered turns to the settled ones. Returns whether the thread was woken for new work.
static bool answers_collect(struct dispatcher *dispatcher)
{
    pthread_mutex_lock(&dispatcher->lock);
    bool is_wanted = dispatcher->is_wanted;
    dispatcher->is_wanted = false;
    LIST_FOREACH(link, &dispatcher->answered)
    {
        list_remove(link);
        turn_end(dispatcher, LIST_ITEM(link, struct device_turn, answered));
    }
    pthread_mutex_unlock(&dispatcher->lock);
    return is_wanted;
}

static void turns_free(struct list *turns)
{
    LIST_FOREACH(link, turns)
    {
        list_remove(link);
        device_turn_free(LIST_ITEM(link, struct device_turn, link));
    }
}

static void outcome_aside(const struct device_turn *turn)
{
    log_row_aside("notify", "rejected by Postgres", "outcome of a push to %s/%s/%s", turn->user_id,
                  turn->app, turn->device_id);
}

// Stores outcomes in Postgres. While it is down, no new turns are taken. Outcomes that it rejects
// together are stored one by one. Devices whose outcome is not stored come up again when their
// leases expire.
static void settle(struct dispatcher *dispatcher)
{
    size_t most = SETTLE_MAX;

    while (!list_is_empty(&dispatcher->settled)) {
        struct list part;
        list_init(&part);
        list_move(&part, &dispatcher->settled, most);
        int r = device_turns_settle(dispatcher->session, &part, &dispatcher->turns);
        bool is_rejected = r == -ERROR_INTERNAL;
        if (r == -ERROR_UNAVAILABLE || (is_rejected && most > 1)) {
            list_append_all(&dispatcher->settled, &part);
            if (!is_rejected)
                return;
            most = 1;
            continue;
        }
        if (is_rejected)
            outcome_aside(LIST_ITEM(part.next, struct device_turn, link));
        else if (r < 0)
            log_write(LOG_ERROR, "notify", "cannot store push results: %s", error_code(r));
        dispatcher->count -= (int64_t)list_length(&part);
        turns_free(&part);
        dispatcher->take_at_ms = 0; // there is room, and more may be due
    }
}

// When the thread must end; 0: not yet.
static int64_t stop_at_ms(struct dispatcher *dispatcher)
{
    pthread_mutex_lock(&dispatcher->lock);
    int64_t at_ms = dispatcher->stop_at_ms;
    pthread_mutex_unlock(&dispatcher->lock);
    return at_ms;
}

// Waits until something is due, or a few outcomes have arrived.
static void wait_for_work(struct dispatcher *dispatcher)
{
    int64_t until_ms = dispatcher->take_at_ms < dispatcher->refresh_at_ms
                           ? dispatcher->take_at_ms
                           : dispatcher->refresh_at_ms;

    pthread_mutex_lock(&dispatcher->lock);
    while (!dispatcher->is_wanted && list_is_empty(&dispatcher->answered) &&
           wait_until(&dispatcher->changed, &dispatcher->lock, until_ms))
        ;
    until_ms = clock_monotonic_ms() + GATHER_MS;
    while (!dispatcher->is_wanted && !list_is_empty(&dispatcher->answered) &&
           wait_until(&dispatcher->changed, &dispatcher->lock, until_ms))
        ;
    pthread_mutex_unlock(&dispatcher->lock);
}

static void round_run(struct dispatcher *dispatcher)
{
    int64_t now_ms = clock_monotonic_ms();

    if (answers_collect(dispatcher))
        dispatcher->take_at_ms = now_ms;
    settle(dispatcher);
    if (stop_at_ms(dispatcher) == 0) {
        dispatcher_refresh(dispatcher, now_ms);
        take(dispatcher, now_ms);
    }
    log_flush();
    wait_for_work(dispatcher);
}

static bool is_over(struct dispatcher *dispatcher)
{
    int64_t at_ms = stop_at_ms(dispatcher);

    return at_ms != 0 && (dispatcher->count == 0 || clock_monotonic_ms() >= at_ms);
}

static void *dispatcher_run(void *arg)
{
    struct dispatcher *dispatcher = CAST(dispatcher, arg);

    while (!is_over(dispatcher))
        round_run(dispatcher);
    return NULL;
}

int dispatcher_start(const struct dispatcher_options *options, struct dispatcher **ret_dispatcher)
{
    struct dispatcher *dispatcher = memory_must_new(sizeof *dispatcher);

    dispatcher->tag = TAG(dispatcher);
    dispatcher->options = *options;
    dispatcher->turns =
        (struct device_turns_options){.secrets = options->secrets,
                                      .app_parallel = options->settings.push_app_parallel,
                                      .lease_ms = LEASE_MS,
                                      .ttl_s = options->settings.push_ttl_s,
                                      .pause_ms = options->settings.push_pause_ms};
    dispatcher->looked_ms = clock_monotonic_ms();
    dispatcher->room = options->settings.push_jobs_max;
    list_init(&dispatcher->under_way);
    list_init(&dispatcher->settled);
    list_init(&dispatcher->answered);
    pthread_mutex_init(&dispatcher->lock, NULL);
    pthread_cond_init(&dispatcher->changed, NULL);
    int r = session_new(options->database_url, options->statement_timeout_ms, &dispatcher->session);
    if (r >= 0)
        r = pipeline_new(&options->cache, &dispatcher->pipeline);
    if (r >= 0)
        r = pthread_create(&dispatcher->thread, NULL, dispatcher_run, dispatcher) == 0
                ? 0
                : -ERROR_MEMORY;
    if (r < 0) {
        dispatcher_free(dispatcher);
        return r;
    }
    *ret_dispatcher = dispatcher;
    return 0;
}

void dispatcher_stop(struct dispatcher *dispatcher, int64_t drain_ms)
{
    if (!dispatcher)
        return;
    int64_t at_ms = clock_monotonic_ms() + drain_ms;
    pthread_mutex_lock(&dispatcher->lock);
    dispatcher->stop_at_ms = at_ms;
    dispatcher->is_wanted = true;
    pthread_cond_signal(&dispatcher->changed);
    pthread_mutex_unlock(&dispatcher->lock);
    session_join(dispatcher->session, dispatcher->thread, at_ms + STOP_EXTRA_MS);
}

void dispatcher_free(struct dispatcher *dispatcher)
{
    if (!dispatcher)
        return;
    turns_free(&dispatcher->under_way); // including answered ones
    turns_free(&dispatcher->settled);
    pipeline_free(dispatcher->pipeline);
    session_free(dispatcher->session);
    buffer_done(&dispatcher->workspaces);
    pthread_cond_destroy(&dispatcher->changed);
    pthread_mutex_destroy(&dispatcher->lock);
    TAGGED_FREE(dispatcher);
}
