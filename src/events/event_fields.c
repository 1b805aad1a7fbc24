// SPDX-License-Identifier: Apache-2.0
// The table of an event's fields: name, type, and the kinds of events that need it.
#include "event_fields.h"

#define PLACE(member) offsetof(struct event, member)
#define ID(key, member, prefixes, needed_by) {key, PLACE(member), FIELD_ID, prefixes, needed_by}
#define ID_OR_EMPTY(key, member, prefixes, needed_by)                                              \
    {key, PLACE(member), FIELD_ID_OR_EMPTY, prefixes, needed_by}
#define INT(key, member, needed_by) {key, PLACE(member), FIELD_INT, "", needed_by}
#define TS(key, member, needed_by) {key, PLACE(member), FIELD_TS, "", needed_by}
#define BOOL(key, member, needed_by) {key, PLACE(member), FIELD_BOOL, "", needed_by}
#define NOTE(key, member, needed_by) {key, PLACE(member), FIELD_NOTE, "", needed_by}
#define END {0}

// Kinds that require a field. A thread's `member` has only `ts`.
#define ALL (~0U)
#define NONE 0U
#define ONLY(kind) (1U << EVENT_##kind)
#define MEMBERS (ONLY(JOIN) | ONLY(LEAVE) | ONLY(MARK))

const struct field event_fields[] = {
    ID("workspace", workspace_id, "T", ALL),
    ID("channel", channel_id, "CGD", ALL),
    BOOL("private", is_private, NONE),
    INT("channel_type", channel_type, NONE),
    BOOL("unread_only", unread_only, NONE),
    BOOL("counted", counted, ONLY(POST)),
    ID("user", user_id, "UW", ALL),
    INT("seq", seq, NONE), // required or forbidden by kind: checked separately
    TS("event_ts", event_ts, ALL),
    TS("ts", ts, ALL),
    ID_OR_EMPTY("origin", origin, "W", NONE),
    INT("deleted_ord", deleted_ord, ONLY(DELETE)),
    ID_OR_EMPTY("deleted_user", deleted_user, "UW", ONLY(DELETE)),
    END,
};

const struct field event_head_fields[] = {
    INT("seq", head.seq, ALL),
    INT("ord", head.ord, ALL),
    INT("strategy", head.strategy, ALL),
    INT("generation", head.generation, ALL),
    END,
};

const struct field event_member_fields[] = {
    INT("epoch", member.epoch, MEMBERS),
    TS("ts", member.ts, ALL),
    INT("seq", member.seq, MEMBERS),
    INT("ord", member.ord, MEMBERS),
    INT("own", member.own, MEMBERS),
    INT("posts", member.posts, MEMBERS),
    INT("member_seq", member.member_seq, MEMBERS),
    INT("number", member.number, MEMBERS),
    BOOL("active", member.active, MEMBERS),
    END,
};

const struct field event_note_fields[] = {
    NOTE("name", note, ALL),
    END,
};

void event_channel_type_bound(struct event *event)
{
    event->channel_type = channel_type_of(event->channel_type);
}

bool event_kind_has_seq(enum event_kind kind)
{
    return kind != EVENT_CREATED && kind != EVENT_STRATEGY && event_kind_has_head(kind);
}

bool event_kind_has_head(enum event_kind kind)
{
    return kind != EVENT_MARK && kind != EVENT_EPHEMERAL && !event_kind_is_thread(kind);
}

bool event_kind_has_member(enum event_kind kind)
{
    return kind == EVENT_JOIN || kind == EVENT_LEAVE || kind == EVENT_MARK ||
           event_kind_is_thread(kind);
}

bool event_kind_has_note(enum event_kind kind)
{
    return kind == EVENT_NOTE;
}
