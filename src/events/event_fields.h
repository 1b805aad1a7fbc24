// SPDX-License-Identifier: Apache-2.0
// The wire format's header as tables. Encoder and decoders iterate over the same tables, so they
// always agree. No value needs escaping.
#pragma once

#include "events/event.h"

enum { WIRE_VERSION = 1 };

// The end of the header. Its strings are ids, so they cannot contain these bytes.
#define WIRE_FRAME_MARK ",\"frame\":"

// Numbers pass through Redis' Lua as doubles; larger ones would lose digits.
#define WIRE_NUMBER_MAX ((INT64_C(1) << 53) - 1)

enum field_type { FIELD_ID, FIELD_ID_OR_EMPTY, FIELD_INT, FIELD_TS, FIELD_BOOL, FIELD_NOTE };

struct field {
    const char *key;
    size_t offset; // in struct event
    enum field_type type;
    const char *prefixes; // of an id
    unsigned needed_by;   // bits 1 << enum event_kind: kinds that require the field
};

// Each table ends with a field without a key. Static data: any thread.
extern const struct field event_fields[];
extern const struct field event_head_fields[];
extern const struct field event_member_fields[];
extern const struct field event_note_fields[];

// Treats a channel type of a later release as private, the type that reveals least.
void event_channel_type_bound(struct event *event);

bool event_kind_has_seq(enum event_kind kind);
bool event_kind_has_head(enum event_kind kind);
bool event_kind_has_member(enum event_kind kind);
bool event_kind_has_note(enum event_kind kind);
