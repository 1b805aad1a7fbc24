// SPDX-License-Identifier: Apache-2.0
// Events: reference-counted records of a change to a channel or a user.
#include "events/event.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"

static const char *const kind_names[EVENT_KIND_MAX] = {
    [EVENT_POST] = "post",
    [EVENT_EDIT] = "edit",
    [EVENT_DELETE] = "delete",
    [EVENT_JOIN] = "join",
    [EVENT_LEAVE] = "leave",
    [EVENT_ARCHIVE] = "archive",
    [EVENT_UNARCHIVE] = "unarchive",
    [EVENT_RENAME] = "rename",
    [EVENT_NOTE] = "note",
    [EVENT_CREATED] = "created",
    [EVENT_MARK] = "mark",
    [EVENT_EPHEMERAL] = "ephemeral",
    [EVENT_THREAD_MARK] = "thread_mark",
    [EVENT_THREAD_FOLLOW] = "thread_follow",
    [EVENT_STRATEGY] = "strategy",
};

struct event *event_new(enum event_kind kind, char *frame, size_t frame_length)
{
    struct event *event = calloc(1, sizeof *event);
    if (!event) {
        free(frame);
        return NULL;
    }
    event->kind = kind;
    event->frame = frame;
    event->frame_length = frame_length;
    event->references = 1;
    return event;
}

struct event *event_take_frame(enum event_kind kind, struct buffer *frame)
{
    size_t length = frame->length;
    char *text = buffer_take_text(frame);

    return text ? event_new(kind, text, length) : NULL;
}

struct event *event_ref(struct event *event)
{
    int before = __atomic_fetch_add(&event->references, 1, __ATOMIC_RELAXED);
    ASSERT(before > 0);
    return event;
}

void event_unref(struct event *event)
{
    if (!event)
        return;
    // Release: this thread's reads of the event happen before another thread frees it.
    int before = __atomic_fetch_sub(&event->references, 1, __ATOMIC_ACQ_REL);
    ASSERT(before > 0);
    if (before > 1)
        return;
    free(event->frame);
    free(event);
}

const char *event_kind_name(enum event_kind kind)
{
    ASSERT(kind < EVENT_KIND_MAX);
    return kind_names[kind];
}

bool event_kind_is_thread(enum event_kind kind)
{
    return kind == EVENT_THREAD_MARK || kind == EVENT_THREAD_FOLLOW;
}

bool event_note_is_valid(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz_");

    return length > 0 && length < EVENT_NOTE_SIZE && name[length] == '\0';
}

int event_kind_parse(const char *name, enum event_kind *ret_kind)
{
    for (enum event_kind kind = 0; kind < EVENT_KIND_MAX; kind++) {
        if (strcmp(name, kind_names[kind]) != 0)
            continue;
        *ret_kind = kind;
        return 0;
    }
    return -ERROR_INVALID_ARGUMENTS;
}
