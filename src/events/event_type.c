// SPDX-License-Identifier: Apache-2.0
// Tells the type of an event from its kind and its channel's type.
#include "events/event_type.h"

#include "base/check.h"

#include <string.h>

// Public channels have names of their own; Slack calls all others groups.
static const struct {
    const char *in_public;
    const char *elsewhere;
} types[EVENT_KIND_MAX] = {
    [EVENT_POST] = {"message", "message"},
    [EVENT_EDIT] = {"message", "message"},
    [EVENT_DELETE] = {"message", "message"},
    [EVENT_JOIN] = {"member_joined_channel", "member_joined_channel"},
    [EVENT_LEAVE] = {"member_left_channel", "member_left_channel"},
    [EVENT_ARCHIVE] = {"channel_archive", "group_archive"},
    [EVENT_UNARCHIVE] = {"channel_unarchive", "group_unarchive"},
    [EVENT_RENAME] = {"channel_rename", "group_rename"},
    [EVENT_CREATED] = {"channel_created", "channel_created"},
    [EVENT_EPHEMERAL] = {"message", "message"},
    [EVENT_STRATEGY] = {"", ""},
};

const char *event_type(enum event_kind kind, enum channel_type channel_type)
{
    ASSERT(kind < EVENT_KIND_MAX && types[kind].in_public);
    return channel_type == CHANNEL_PUBLIC ? types[kind].in_public : types[kind].elsewhere;
}

const char *event_type_of_mark(enum channel_type channel_type, bool unread_only)
{
    static const char *const marked[CHANNEL_TYPE_MAX] = {
        [CHANNEL_PUBLIC] = "channel_marked",
        [CHANNEL_PRIVATE] = "group_marked",
        [CHANNEL_MPIM] = "mpim_marked",
        [CHANNEL_IM] = "im_marked",
    };

    ASSERT(channel_type < CHANNEL_TYPE_MAX);
    return unread_only ? "unread_changed" : marked[channel_type];
}

const char *event_type_of_thread(enum event_kind kind, bool is_followed)
{
    ASSERT(event_kind_is_thread(kind));
    if (kind == EVENT_THREAD_MARK)
        return "thread_marked";
    return is_followed ? "thread_subscribed" : "thread_unsubscribed";
}

const char *event_type_of(const struct event *event)
{
    enum channel_type channel_type = (enum channel_type)event->channel_type;

    if (event->kind == EVENT_MARK)
        return event_type_of_mark(channel_type, event->unread_only);
    if (event_kind_is_thread(event->kind))
        return event_type_of_thread(event->kind, event->member.active);
    if (event->kind == EVENT_NOTE)
        return event->note;
    return event_type(event->kind, channel_type);
}

bool event_note_is_slacks(const char *note)
{
    static const char *const known[] = {"reaction_added", "reaction_removed", "pin_added",
                                        "pin_removed"};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(note, known[i]) == 0)
            return true;
    return false;
}

bool event_is_slacks(enum event_kind kind, enum channel_type channel_type, const char *type)
{
    bool is_direct = channel_type == CHANNEL_IM || channel_type == CHANNEL_MPIM;

    if (kind == EVENT_JOIN || kind == EVENT_LEAVE)
        return !is_direct;
    return kind != EVENT_NOTE || event_note_is_slacks(type);
}
