// SPDX-License-Identifier: Apache-2.0
// Translates events into the calls that update Redis: heads, cursors, deletes, counts.
#include "unread/effects.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "unread/keys.h"

// Maximum deletes, or heads, per call.
enum { DELETES_MAX = 64, HEADS_MAX = 64, APPLY_ARGUMENTS = 7, APPLY_NUMBERS = 3 };

// Consecutive events of a channel: one step of its head, to that of the last event.
struct effect_run {
    struct event *const *events;
    size_t count;
    size_t deletes;
};

static bool has_seq(const struct event *event)
{
    return event->seq > 0;
}

// The longest run at the start of `events` (at least one).
static struct effect_run run_begin(struct event *const *events, size_t count)
{
    struct effect_run run = {.events = events};
    while (run.count < count) {
        const struct event *event = events[run.count];
        bool follows = run.count == 0 || (event->seq == events[run.count - 1]->seq + 1 &&
                                          strcmp(event->channel_id, events[0]->channel_id) == 0);
        if (!follows || run.deletes == DELETES_MAX)
            break;
        run.deletes += event->deleted_ord > 0;
        run.count++;
    }
    return run;
}

// Appends a run's deletes, as pairs, to an argument vector. Returns the new count.
static int run_deletes(const struct effect_run *run, const char **texts, int count,
                       char numbers[][KEY_NUMBER_SIZE])
{
    for (size_t i = 0; i < run->count; i++) {
        const struct event *event = run->events[i];
        if (event->deleted_ord == 0)
            continue;
        snprintf(*numbers, KEY_NUMBER_SIZE, "%" PRId64, event->deleted_ord);
        texts[count++] = *numbers++;
        texts[count++] = event->deleted_user;
    }
    return count;
}

// Heads to be moved by one call.
struct effect_heads {
    int count;
    char keys[HEADS_MAX][KEY_SIZE];
    char numbers[HEADS_MAX * APPLY_NUMBERS][KEY_NUMBER_SIZE];
};

static void heads_flush(struct effect_heads *heads, struct pipeline *pipeline)
{
    const char *texts[3 + HEADS_MAX * (1 + APPLY_NUMBERS)] = {"FCALL", "heads_apply"};
    char count_text[KEY_NUMBER_SIZE];
    int count = 3;

    if (heads->count == 0)
        return;
    snprintf(count_text, sizeof count_text, "%d", heads->count);
    texts[2] = count_text;
    for (int i = 0; i < heads->count; i++)
        texts[count++] = heads->keys[i];
    for (int i = 0; i < heads->count * APPLY_NUMBERS; i++)
        texts[count++] = heads->numbers[i];
    pipeline_add(pipeline, count, texts, NULL);
    heads->count = 0;
}

// Prints the head at the end of a run.
static void run_print(const struct effect_run *run, char *key, char numbers[][KEY_NUMBER_SIZE])
{
    const struct event *last = run->events[run->count - 1];
    const int64_t parts[APPLY_NUMBERS] = {run->events[0]->seq, last->seq, last->head.ord};

    key_channel(key, last->channel_id);
    for (size_t i = 0; i < APPLY_NUMBERS; i++)
        snprintf(numbers[i], KEY_NUMBER_SIZE, "%" PRId64, parts[i]);
}

static void run_add_deletes(struct pipeline *pipeline, const struct effect_run *run)
{
    const char *texts[APPLY_ARGUMENTS + 2 * DELETES_MAX] = {"FCALL", "channel_apply", "1"};
    char numbers[APPLY_NUMBERS][KEY_NUMBER_SIZE], deletes[DELETES_MAX][KEY_NUMBER_SIZE];
    char key[KEY_SIZE];
    int count = 3;

    run_print(run, key, numbers);
    texts[count++] = key;
    for (size_t i = 0; i < APPLY_NUMBERS; i++)
        texts[count++] = numbers[i];
    count = run_deletes(run, texts, count, deletes);
    pipeline_add(pipeline, count, texts, NULL);
}

static void run_add(struct pipeline *pipeline, struct effect_heads *heads,
                    const struct effect_run *run)
{
    if (run->deletes > 0) {
        heads_flush(heads, pipeline); // keeps a channel's runs in order
        run_add_deletes(pipeline, run);
        return;
    }
    if (heads->count == HEADS_MAX)
        heads_flush(heads, pipeline);
    run_print(run, heads->keys[heads->count], &heads->numbers[heads->count * APPLY_NUMBERS]);
    heads->count++;
}

// Events without a seq do not change a head.
static void heads_add(struct pipeline *pipeline, struct event *const *events, size_t count)
{
    struct effect_heads heads;

    heads.count = 0;
    for (size_t i = 0; i < count;) {
        if (!has_seq(events[i])) {
            i++;
            continue;
        }
        struct effect_run run = run_begin(events + i, count - i);
        run_add(pipeline, &heads, &run);
        i += run.count;
    }
    heads_flush(&heads, pipeline);
}

// The event may be old: an unknown state stays unknown, see member_apply.
static void member_add(struct pipeline *pipeline, const struct event *event)
{
    struct member_call call;
    const char *texts[MEMBER_CALL_ARGUMENTS + 1];
    member_call_make(&call, event->user_id, event->channel_id, &event->member);
    for (size_t i = 0; i < MEMBER_CALL_ARGUMENTS; i++)
        texts[i] = call.texts[i];
    texts[MEMBER_CALL_ARGUMENTS] = "0";
    pipeline_add(pipeline, MEMBER_CALL_ARGUMENTS + 1, texts, NULL);
}

// Updates the member list, and removes the counts of members who left.
static void list_add(struct pipeline *pipeline, const struct event *event)
{
    char members[KEY_SIZE], unread[KEY_SIZE], number[KEY_NUMBER_SIZE];

    key_members(members, event->channel_id);
    key_unread(unread, event->user_id, event->channel_id);
    snprintf(number, sizeof number, "%" PRId64, event->member.number);
    pipeline_add(pipeline, 8,
                 (const char *[]){"FCALL", "members_change", "2", members, unread, event->user_id,
                                  number, event->kind == EVENT_JOIN ? "1" : "0"},
                 NULL);
}

static bool has_list(const struct event *event)
{
    return event->kind == EVENT_JOIN || event->kind == EVENT_LEAVE;
}

static bool has_member(const struct event *event)
{
    return event->kind == EVENT_JOIN || event->kind == EVENT_LEAVE || event->kind == EVENT_MARK;
}

static void members_add(struct pipeline *pipeline, struct event *const *events, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (has_member(events[i])) {
            member_add(pipeline, events[i]);
            if (has_list(events[i]))
                list_add(pipeline, events[i]);
        }
}

void effects_add(struct pipeline *pipeline, struct event *const *events, size_t count)
{
    members_add(pipeline, events, count);
    heads_add(pipeline, events, count);
}

void effects_add_thread(struct pipeline *pipeline, const struct event *event, int64_t seconds)
{
    char key[KEY_THREAD_SIZE];
    char ts[KEY_NUMBER_SIZE];
    char life[KEY_NUMBER_SIZE];
    key_thread(key, event->user_id, event->channel_id, event->ts);
    snprintf(ts, sizeof ts, "%" PRId64, event->member.ts);
    snprintf(life, sizeof life, "%" PRId64, seconds);
    pipeline_add(pipeline, 6, (const char *[]){"FCALL", "thread_apply", "1", key, ts, life}, NULL);
}

static void thread_forget(struct pipeline *pipeline, const struct event *event)
{
    char key[KEY_THREAD_SIZE];
    key_thread(key, event->user_id, event->channel_id, event->ts);
    pipeline_add(pipeline, 2, (const char *[]){"DEL", key}, NULL);
}

void effects_forget(struct pipeline *pipeline, struct event *const *events, size_t count)
{
    char key[KEY_SIZE];
    key_channel(key, events[0]->channel_id);
    pipeline_add(pipeline, 2, (const char *[]){"DEL", key}, NULL);
    key_members(key, events[0]->channel_id);
    pipeline_add(pipeline, 2, (const char *[]){"DEL", key}, NULL);
    for (size_t i = 0; i < count; i++) {
        key_cursor(key, events[i]->user_id);
        if (has_member(events[i]))
            pipeline_add(pipeline, 3, (const char *[]){"HDEL", key, events[i]->channel_id}, NULL);
        if (event_kind_is_thread(events[i]->kind))
            thread_forget(pipeline, events[i]);
    }
}
