// SPDX-License-Identifier: Apache-2.0
// The header of an event's wire form as tables, which are walked to write it and to read it: both
// always agree. Nothing in it is escaped.
#pragma once

#include "events/event.h"

enum { WIRE_VERSION = 1 };

// Where the header ends. Its strings are ids: these bytes cannot occur within one.
#define WIRE_FRAME_MARK ",\"frame\":"

// Numbers go through Redis' Lua, where they are doubles: above it they would lose digits.
#define WIRE_NUMBER_MAX ((INT64_C(1) << 53) - 1)

enum field_type { FIELD_ID, FIELD_ID_OR_EMPTY, FIELD_INT, FIELD_TS, FIELD_BOOL };

struct field {
    const char *key;
    size_t offset; // in struct event
    enum field_type type;
    const char *prefixes; // of an id
    unsigned needed_by;   // bits 1 << enum event_kind: those of which it may not be absent
};

// Each ends with a field without a key. Static data: any thread.
extern const struct field event_fields[];
extern const struct field event_head_fields[];
extern const struct field event_member_fields[];

// A type of a later release is taken for the one that tells nobody who may not be told.
void event_channel_type_bound(struct event *event);

bool event_kind_has_seq(enum event_kind kind);
bool event_kind_has_head(enum event_kind kind);
bool event_kind_has_member(enum event_kind kind);
