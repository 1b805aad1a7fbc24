// SPDX-License-Identifier: Apache-2.0
// Decodes events from the log and from pub/sub. The fast path reads the header in exactly the
// format of event_encode(), by the same tables in the same order: parsing it into a tree took more
// than half of a fan-out worker's time with Kafka. The frame is never parsed, only checked to be a
// single JSON object and copied. event_tolerant.c decodes everything else.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "event_fields.h"
#include "event_frame.h"
#include "event_tolerant.h"

enum { KIND_SIZE = 24 };

// The input not yet read.
struct cursor {
    const char *at;
    const char *end;
    bool comma; // whether the next key needs a comma before it
};

static bool cursor_take(struct cursor *c, const char *bytes)
{
    size_t length = strlen(bytes);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, bytes, length) != 0)
        return false;
    c->at += length;
    return true;
}

static bool key_take(struct cursor *c, const char *key)
{
    bool comma = c->comma;
    c->comma = true;
    return (!comma || cursor_take(c, ",")) && cursor_take(c, "\"") && cursor_take(c, key) &&
           cursor_take(c, "\":");
}

static bool object_open(struct cursor *c)
{
    c->comma = false;
    return cursor_take(c, "{");
}

// Reads a string shorter than `size` without escapes, as all ids are.
static bool string_take(struct cursor *c, char *ret_text, size_t size)
{
    size_t length = 0;
    if (!cursor_take(c, "\""))
        return false;
    for (; c->at < c->end && *c->at != '"'; c->at++) {
        if (length + 1 == size || *c->at < ' ' || *c->at > '~' || *c->at == '\\')
            return false;
        ret_text[length++] = *c->at;
    }
    ret_text[length] = '\0';
    return cursor_take(c, "\"");
}

static bool int_take(struct cursor *c, int64_t *ret_number)
{
    const char *first = c->at;
    int64_t number = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        number = number * 10 + (*c->at - '0');
        if (number > WIRE_NUMBER_MAX)
            return false;
    }
    *ret_number = number;
    return c->at > first && (*first != '0' || c->at == first + 1);
}

static bool bool_take(struct cursor *c, bool *ret_value)
{
    *ret_value = cursor_take(c, "true");
    return *ret_value || cursor_take(c, "false");
}

static bool ts_take(struct cursor *c, int64_t *ret_ts_us)
{
    char text[TS_SIZE];
    return string_take(c, text, sizeof text) && ts_parse(text, strlen(text), ret_ts_us) == 0;
}

static bool field_take(struct cursor *c, const struct field *field, struct event *event)
{
    char *value = (char *)event + field->offset;
    if (!key_take(c, field->key))
        return false;
    switch (field->type) {
    case FIELD_ID:
        return string_take(c, value, EVENT_ID_SIZE) && id_is_valid(value, field->prefixes);
    case FIELD_ID_OR_EMPTY:
        return string_take(c, value, EVENT_ID_SIZE) &&
               (value[0] == '\0' || id_is_valid(value, field->prefixes));
    case FIELD_INT:
        return int_take(c, (int64_t *)(void *)value);
    case FIELD_TS:
        return ts_take(c, (int64_t *)(void *)value);
    case FIELD_BOOL:
        return bool_take(c, (bool *)value);
    case FIELD_NOTE:
        return string_take(c, value, EVENT_NOTE_SIZE) && event_note_is_valid(value);
    }
    return false;
}

static bool fields_take(struct cursor *c, const struct field *fields, struct event *event)
{
    for (const struct field *field = fields; field->key; field++)
        if (!field_take(c, field, event))
            return false;
    return true;
}

static bool part_take(struct cursor *c, const char *key, const struct field *fields,
                      struct event *event)
{
    return key_take(c, key) && object_open(c) && fields_take(c, fields, event) &&
           cursor_take(c, "}");
}

static bool kind_take(struct cursor *c, enum event_kind *ret_kind)
{
    char name[KIND_SIZE];
    return key_take(c, "kind") && string_take(c, name, sizeof name) &&
           event_kind_parse(name, ret_kind) == 0;
}

// Reads the complete header up to the frame. Its closing brace comes after the frame.
static bool header_take(struct cursor *c, struct event *event)
{
    int64_t version;
    if (!object_open(c) || !key_take(c, "v") || !int_take(c, &version) || version != WIRE_VERSION ||
        !kind_take(c, &event->kind) || !fields_take(c, event_fields, event))
        return false;
    event_channel_type_bound(event);
    if (event_kind_has_seq(event->kind) != (event->seq > 0))
        return false;
    if (event_kind_has_head(event->kind) && !part_take(c, "head", event_head_fields, event))
        return false;
    if (event_kind_has_member(event->kind) && !part_take(c, "member", event_member_fields, event))
        return false;
    if (event_kind_has_note(event->kind) && !part_take(c, "note", event_note_fields, event))
        return false;
    return c->at == c->end;
}

static void event_unrefp(struct event **event)
{
    event_unref(*event);
}

// Decodes the exact format of event_encode().
static int event_decode_known(const char *data, size_t length, struct event **ret_event)
{
    const char *mark = memmem(data, length, WIRE_FRAME_MARK, strlen(WIRE_FRAME_MARK));
    if (!mark || data[length - 1] != '}')
        return -ERROR_INVALID_ARGUMENTS;
    const char *frame = mark + strlen(WIRE_FRAME_MARK);
    size_t frame_length = length - (size_t)(frame - data);
    if (frame_length-- == 0 || !text_is_utf8(frame, frame_length) ||
        frame_object_span(frame, frame_length) != frame_length || frame_length == 0)
        return -ERROR_INVALID_ARGUMENTS;

    char *copy = malloc(frame_length);
    if (!copy)
        return -ERROR_MEMORY;
    memcpy(copy, frame, frame_length);
    CLEANUP(event_unrefp) struct event *event = event_new(EVENT_POST, copy, frame_length);
    if (!event)
        return -ERROR_MEMORY;
    if (!header_take(&(struct cursor){.at = data, .end = mark}, event))
        return -ERROR_INVALID_ARGUMENTS;
    *ret_event = TAKE(event);
    return 0;
}

int event_decode(const char *data, size_t length, struct event **ret_event, char *ret_reason)
{
    int r = event_decode_known(data, length, ret_event);
    if (r == -ERROR_INVALID_ARGUMENTS)
        r = event_decode_tolerant(data, length, ret_event, ret_reason);
    if (r == -ERROR_MEMORY)
        snprintf(ret_reason, EVENT_REASON_SIZE, "out of memory");
    return r;
}
