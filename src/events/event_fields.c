// SPDX-License-Identifier: Apache-2.0
#include "event_fields.h"

#define PLACE(member) offsetof(struct event, member)
#define ID(key, member, prefixes)                                                                  \
    {                                                                                              \
        key, PLACE(member), FIELD_ID, prefixes                                                     \
    }
#define ID_OR_EMPTY(key, member, prefixes)                                                         \
    {                                                                                              \
        key, PLACE(member), FIELD_ID_OR_EMPTY, prefixes                                            \
    }
#define INT(key, member)                                                                           \
    {                                                                                              \
        key, PLACE(member), FIELD_INT, ""                                                          \
    }
#define TS(key, member)                                                                            \
    {                                                                                              \
        key, PLACE(member), FIELD_TS, ""                                                           \
    }
#define BOOL(key, member)                                                                          \
    {                                                                                              \
        key, PLACE(member), FIELD_BOOL, ""                                                         \
    }
#define END                                                                                        \
    {                                                                                              \
        0                                                                                          \
    }

const struct field event_fields[] = {
    ID("workspace", workspace_id, "T"),
    ID("channel", channel_id, "CGD"),
    BOOL("private", is_private),
    BOOL("counted", counted),
    ID("user", user_id, "UW"),
    INT("seq", seq),
    TS("event_ts", event_ts),
    TS("ts", ts),
    ID_OR_EMPTY("origin", origin, "W"),
    INT("deleted_ord", deleted_ord),
    ID_OR_EMPTY("deleted_user", deleted_user, "UW"),
    END,
};

const struct field event_head_fields[] = {
    INT("seq", head.seq),
    INT("ord", head.ord),
    INT("strategy", head.strategy),
    INT("generation", head.generation),
    END,
};

const struct field event_member_fields[] = {
    INT("epoch", member.epoch),
    TS("ts", member.ts),
    INT("seq", member.seq),
    INT("ord", member.ord),
    INT("own", member.own),
    INT("posts", member.posts),
    INT("member_seq", member.member_seq),
    INT("number", member.number),
    BOOL("active", member.active),
    END,
};

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
